/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_COMM_CURVE_H
#define NEUROSHARD_COSTMODEL_FORMULAS_COMM_CURVE_H

#include "core/sample.h"

/* Time of an exchange as a function of its bytes. */

/* Rule by which the time of an all-to-all inside a host follows from the bytes.
 * Across hosts the bytes of the busiest port always determine the time. A port
 * belongs to one device, or to all devices of a host (shares_port). */
enum comm_form {
    /* Switched links: the bytes of the busiest port determine the time, by
     * max(sent, received). */
    COMM_PORT,
    COMM_TOTAL /* shared memory: all bytes go through one copy bandwidth */
};
extern const char *const comm_form_names[];

/* Rules by which the time of an all-to-all follows from the bytes. */
struct comm_rules {
    enum comm_form form; /* inside a host */
    /* True if the devices of a host share one port to other hosts. The mean of
     * their bytes then determines the time of an exchange across hosts, so that
     * a bandwidth is still that of one device. */
    bool shares_port;
};
/* Returns the bytes that determine the time of a measured exchange. A port does
 * not carry the bytes that stay on its rank. Across hosts it does not carry the
 * bytes that stay on its host. If the bytes of the hosts are unknown, those of
 * the busiest rank are used for a shared port, too. */
double comm_rules_bytes(struct comm_rules rules,
                        const struct comm_sample *sample);

/*
 * Time of an exchange as a piecewise linear function of its message size. The
 * curve begins with the latency at bytes[0] = 0. Beyond the last knot it
 * continues its last line. A curve of two knots is the classic alpha + bytes /
 * bandwidth.
 */
#define COMM_MAX_KNOTS 34
struct comm_curve {
    /* Numbers of ranks and hosts at which the curve was measured; 0: it holds
     * for any number. */
    uint32_t n_ranks, n_hosts;
    /* Number of knots: 0 if the curve is unknown, else at least 2. */
    uint32_t n_knots;
    /* Bytes at each knot, increasing, bytes[0] = 0. */
    double bytes[COMM_MAX_KNOTS];
    /* Time at each knot, >= 0, never decreasing. */
    double us[COMM_MAX_KNOTS];
};

/* Returns the curve of two knots with this latency and bandwidth, in 10^9 bytes
 * a second. At the second knot the bytes are those moved in one second
 * (COMM_LINE_US), and the time is the latency plus COMM_LINE_US. */
#define COMM_LINE_US 1e6
struct comm_curve comm_line(double alpha_us, double gbps);
/* Returns the index of the knot at the end of the line that holds this number
 * of bytes. Sets *share to the position on the line, from 0 at its first knot
 * to 1 at its second. */
static inline uint32_t comm_curve_knot(const struct comm_curve *curve,
                                       double bytes, double *share)
{
    /* Counts all knots below `bytes` instead of stopping at the right one,
     * since the CPU cannot predict the branch that ends a search. */
    uint32_t k = 1;

    for (uint32_t i = 1; i + 1 < curve->n_knots; i++)
        k += bytes >= curve->bytes[i];
    *share =
        (bytes - curve->bytes[k - 1]) / (curve->bytes[k] - curve->bytes[k - 1]);
    return k;
}

static inline double comm_curve_us(const struct comm_curve *curve, double bytes)
{
    double share;
    uint32_t k = comm_curve_knot(curve, bytes, &share);

    return curve->us[k - 1] + share * (curve->us[k] - curve->us[k - 1]);
}

/* Returns the bandwidth of the last line of the curve, in 10^9 bytes a
 * second. */
double comm_curve_gbps(const struct comm_curve *curve);

#endif
