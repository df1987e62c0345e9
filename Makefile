# SPDX-License-Identifier: MIT
# `make help` lists the targets and switches.

.DELETE_ON_ERROR:
.SUFFIXES:

# --- Switches -------------------------------------------------------------

CONFIG ?= release
ifeq ($(origin CC),default)
    CC = gcc
endif
V      ?= 0
T      ?= 60
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share/neuroshard
ifndef NVCC
    NVCC := $(firstword $(wildcard $(shell command -v nvcc) \
        /usr/local/cuda/bin/nvcc))
endif
ifndef CUDA
    CUDA := $(if $(and $(NVCC),$(shell command -v g++)),1,0)
endif
ifeq ($(CUDA)$(NVCC),1)
    $(error CUDA=1 needs nvcc; NVCC=PATH says where it is)
endif
ifneq ($(filter-out 0 1 emulated,$(CUDA)),)
    $(error CUDA=$(CUDA) is none of 0, 1, emulated)
endif
ifeq ($(origin CXX),default)
    CXX = $(patsubst gcc%,g++%,$(patsubst clang%,clang++%,$(notdir $(CC))))
endif
STATIC ?= 0
MPICC ?= mpicc
ifndef MPI
    MPI := $(if $(and $(filter 0,$(STATIC)),$(shell command -v $(MPICC))),1,0)
endif

# Builds with different switches use different folders. CUDA, MPI and STATIC
# choose source files, but no flags of C files. So builds that differ only in
# them share the objects in OBJ, unless O is given.
COMPILER = $(if $(filter gcc,$(CC)),,-$(notdir $(firstword $(CC))))
COMMON  := build/$(CONFIG)$(COMPILER)
O ?= $(COMMON)$(patsubst 1,-cuda,$(patsubst \
    emulated,-emulated,$(filter-out 0,$(CUDA))))$(if \
    $(filter 1,$(STATIC)),-static)$(if $(filter 1,$(MPI)),,-nompi)
OBJ ?= $(if $(filter file,$(origin O)),$(COMMON),$(O))

VERSION := $(shell cat VERSION)
# Build id of the program: src/base/version.h.
BUILD ?= $(or $(addprefix g,$(if $(wildcard .git),$(shell git describe --always \
    --dirty --abbrev=8 --exclude '*' 2>/dev/null))),$(VERSION))
Q = $(if $(filter 1,$(V)),,@)
# The command that calls make again within a target: in parallel, unless the
# caller has chosen the number of jobs.
AGAIN = $(MAKE) --no-print-directory \
    $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

# --- Flags ----------------------------------------------------------------

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
    -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
    -Wformat=2 -Wundef -Wvla -Wpointer-arith -Wcast-qual -Wwrite-strings \
    -Wswitch-enum -Werror
CPPFLAGS_ALL = -D_XOPEN_SOURCE=700 -D_DEFAULT_SOURCE -Isrc -I. \
    -DNEUROSHARD_VERSION='"$(VERSION)"' $(CPPFLAGS)
# -g1 gives backtraces and profiles their lines, and compiles in five sixths of
# the time of -g. CONFIG=debug is for debuggers.
CFLAGS_release = -O3 -g1
# The checker of search states runs on every CHECK_EVERY-th change:
# ASSIGNMENT_CHECK_EVERY, assignment_check_every.
CHECK_EVERY ?= 256
CFLAGS_debug   = -O0 -g3 -DASSIGNMENT_CHECK_EVERY=$(CHECK_EVERY)
# -O2 runs the tests in two thirds of the time of -O1.
CFLAGS_asan    = -O2 -g1 -fsanitize=address,undefined -DHAVE_ASAN \
    -DASSIGNMENT_CHECK_EVERY=$(CHECK_EVERY) \
    -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan    = -O1 -g -fsanitize=thread
CFLAGS_fuzz    = $(CFLAGS_asan) -fsanitize=fuzzer-no-link
ifeq ($(CFLAGS_$(CONFIG)),)
    $(error CONFIG=$(CONFIG) is none of release, debug, asan, tsan)
endif
CFLAGS_ALL = -std=c11 -ffp-contract=off -fno-math-errno -pthread \
    $(WARNINGS) $(CFLAGS_$(CONFIG)) $(CFLAGS)
# Source files for one instruction set are named *_avx2.c and *_avx512.c.
ISA_avx2   = -mavx2 -mfma -mf16c
ISA_avx512 = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c
isa = $(ISA_$(lastword $(subst _, ,$(basename $(notdir $(1))))))

CUDA_HOME  = $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
# -fmad=false: products are rounded before they are added, as on the CPU.
NVCC_FLAGS = -std=c++17 -O3 -g -fmad=false \
    -gencode arch=compute_80,code=sm_80 \
    -gencode arch=compute_90,code=[sm_90,compute_90] \
    -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wshadow=local,-Werror \
    $(NVFLAGS)
# CUDA=emulated compiles the same CUDA files with the host's compiler
# (tests/emulator).
CXX_FLAGS = -std=c++17 -ffp-contract=off -fno-math-errno -pthread \
    -Wall -Wextra -Wshadow$(if $(findstring clang,$(CXX)),,=local) \
    -Wno-unknown-pragmas -Werror $(CFLAGS_$(CONFIG)) $(CXXFLAGS)

# Open MPI's compiler prints compile and link flags separately; other MPI
# compilers print both in one line.
ifeq ($(MPI),1)
    MPI_FLAGS := $(shell $(MPICC) --showme:compile 2>/dev/null || \
        $(MPICC) -show)
    MPI_LIBS := $(shell $(MPICC) --showme:link 2>/dev/null || $(MPICC) -show)
    MPI_LIBS := $(filter -L% -l% -Wl%,$(MPI_LIBS))
    ifeq ($(MPI_LIBS),)
        $(error MPI=1 needs mpicc; MPICC=PATH says where it is)
    endif
endif
MPI_INCLUDES = $(patsubst -I%,-isystem %,$(filter -I%,$(MPI_FLAGS)))

# --- Rooms ----------------------------------------------------------------

# Rooms are the layers of the program, one folder each. The lowest comes first;
# the rooms of SIBLINGS are on the same level, except that those of COSTMODEL
# are layers, the lowest last, because a linker needs them in this order. A file
# may include headers of its own room and of lower rooms. Of the siblings,
# `explain` includes only search and emit. LIBS_ROOM lists the libraries that a
# room calls.
LOWER     = base core device
COSTMODEL = learning models modelfile formulas
SIBLINGS  = io emit exec $(COSTMODEL) search microbench
ROOMS     = $(LOWER) $(SIBLINGS) explain cli

DIR_base       = src/base
DIR_core       = src/core
DIR_device     = src/device
DIR_io         = src/io
DIR_emit       = src/emit
DIR_exec       = src/exec
DIR_formulas   = costmodel/formulas
DIR_modelfile  = costmodel/modelfile
DIR_models     = costmodel/models
DIR_learning   = costmodel/learning
DIR_search     = search
DIR_microbench = microbench
DIR_explain    = src/explain
DIR_cli        = src/cli

linked = $(if $(filter 1,$(STATIC)),-Wl$(,)-Bstatic $(1) \
    $(if $(filter -static,$(LDFLAGS)),,-Wl$(,)-Bdynamic),$(1))
, = ,
# OpenBLAS is loaded when it multiplies matrices first, or linked into the
# program if STATIC=1.
OPENBLAS_DIR   = $(wildcard /usr/lib/x86_64-linux-gnu/openblas-pthread)
LIBS_base      = $(call linked,-ljansson -lxxhash -lz) -lm -lpthread
LIBS_io        = $(call linked,-lsqlite3)
# The CUDA runtime is linked statically, so the program starts on machines
# without a driver.
LIBS_device    = $(if $(filter 1,$(CUDA)),-L$(CUDA_HOME)/lib64 \
    -lcudart_static $(call linked,-lstdc++) -lrt -lpthread) $(MPI_LIBS) \
    $(if $(filter 1,$(STATIC)),$(OPENBLAS_DIR:%=-L%) \
    $(call linked,-lopenblas)) -lm -lpthread -ldl
EMULATOR       = $(if $(filter emulated,$(CUDA)),$(O)/libemulator.a)

# Folder of the objects of CUDA files
CU_OBJ = $(if $(filter emulated,$(CUDA)),$(O),$(OBJ))
# If a backend NAME is switched off, its files *_NAME.* are left out and
# *_noNAME.c is compiled instead. A new backend needs one more line here.
LEFT_OUT = $(if $(filter 0,$(CUDA)),%.cu,%_nocuda.c) \
    $(if $(filter 1,$(MPI)),%_nompi.c,%_mpi.c) \
    $(if $(filter 1,$(STATIC)),%_shared_openblas.c,%_static_openblas.c)

sources = $(filter-out $(LEFT_OUT),$(sort \
    $(wildcard $(DIR_$(1))/*.c $(DIR_$(1))/*.cu)))
objects = $(patsubst %.c,$(OBJ)/%.o,$(filter %.c,$(call sources,$(1)))) \
    $(patsubst %.cu,$(CU_OBJ)/%.o,$(filter %.cu,$(call sources,$(1))))
archives = $(patsubst %,$(O)/lib%.a,$(1))
# Programs for other machines (STATIC=1) are linked without functions that
# nobody calls, because parts of libstdc++ need a newer libc than our own code.
# A program that loads libraries (no -static) uses the machine's libc, which may
# be old; it is linked with .ci/old_glibc.o.
OLD_GLIBC = $(if $(filter 1,$(STATIC)),$(if $(filter -static,$(LDFLAGS)),,\
    $(OBJ)/.ci/old_glibc.o))
# Checker of search states, for tests and for debug and asan builds.
ASSIGNMENT_CHECK = $(OBJ)/tests/unit/search/assignment_check.o
# The gold linker, if it is there, links a test in less than half the time. It
# warns of the symbols of sanitizers, and was not tried with the emulator.
ifndef TEST_LD
    TEST_LD := $(if $(and $(filter release debug,$(CONFIG)),$(filter 0,$(STATIC)),\
        $(filter 0 1,$(CUDA)),$(shell command -v ld.gold)),-fuse-ld=gold)
endif
LINK = $(if $(EMULATOR),$(CXX) $(CXX_FLAGS),$(CC) $(CFLAGS_ALL)) $(LDFLAGS) \
    $(if $(filter $(O)/tests/%,$@),$(TEST_LD)) \
    $(if $(filter 1,$(STATIC)),-Wl$(,)--gc-sections) -o $@ \
    $(filter %.o %.a,$^) $(if $(OLD_GLIBC),$(if $(EMULATOR),-static-libstdc++) \
    -Wl$(,)--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -l:librt.so.1 \
    -Wl$(,)--as-needed)

# --- The program ----------------------------------------------------------

.PHONY: all neuroshard
all: neuroshard
	@.ci/banner '$(VERSION)' '$(CONFIG)' '$(CC)' '$(CUDA)' '$(NVCC)' '$(MPI)' \
	    '$(STATIC)'

neuroshard: $(O)/neuroshard
	@ln -sf $< $@

# The program finds its data in the folder data/ next to itself.
$(O)/neuroshard: $(OBJ)/src/cli/main.o $(O)/build_id.o $(O)/link_flags \
    $(if $(filter debug asan,$(CONFIG)),$(ASSIGNMENT_CHECK)) \
    $(call archives,cli explain $(SIBLINGS) device core base) $(EMULATOR) $(OLD_GLIBC)
	@echo "  LD   $@"
	@ln -sfnr data $(@D)/data
	$(Q)$(LINK) $(foreach r,$(SIBLINGS) $(LOWER),$(LIBS_$(r)))

define ROOM_RULE
$(O)/lib$(1).a: $(filter-out %/main.o,$(call objects,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call ROOM_RULE,$(r))))

$(OBJ)/%.o: %.c $(OBJ)/flags VERSION | $(O)/needs
	@mkdir -p $(@D)
	@echo "  CC   $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(call isa,$<) -MMD -MP -c $< -o $@

ifeq ($(CUDA),emulated)
$(CU_OBJ)/%.o: %.cu $(O)/cxx_flags VERSION | $(O)/needs
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(CXX) -x c++ -Itests/emulator $(CPPFLAGS_ALL) $(CXX_FLAGS) \
	    -MMD -MP -c $< -o $@
else
# Beside the object, ptxas reports registers and memory of the kernels, and nvcc
# keeps their PTX, for check-kernels.
$(CU_OBJ)/%.o $(CU_OBJ)/%.ptxas: %.cu $(OBJ)/nvcc_flags VERSION | $(O)/needs
	@mkdir -p $(basename $@).kept
	@echo "  NVCC $<"
	$(Q)$(NVCC) $(CPPFLAGS_ALL) $(NVCC_FLAGS) -Xptxas -v -MMD -MP \
	    --keep --keep-dir $(basename $@).kept \
	    -MF $(basename $@).d -MT $(basename $@).o -c $< -o $(basename $@).o \
	    2>$(basename $@).log || { cat $(basename $@).log; exit 1; }
	@cat $(basename $@).log $(basename $@).kept/*.ptx >$(basename $@).ptxas
	@rm -r $(basename $@).kept
endif

$(O)/tests/emulator/%.o: tests/emulator/%.cpp $(O)/cxx_flags | $(O)/needs
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	$(Q)$(CXX) -Itests/emulator $(CPPFLAGS_ALL) $(CXX_FLAGS) -MMD -MP \
	    -c $< -o $@

$(O)/libemulator.a: $(patsubst %.cpp,$(O)/%.o,$(filter-out %/t_emulator.cpp, \
    $(sort $(wildcard tests/emulator/*.cpp))))
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(OBJ)/src/base/file.o: private CPPFLAGS_ALL += -DNEUROSHARD_DATADIR='"$(DATADIR)"'
$(OBJ)/src/base/file.o: $(OBJ)/datadir
# Files that .incbin includes; -MMD does not find these dependencies.
$(OBJ)/src/io/store.o: data/schema.sql
$(OBJ)/src/io/store.o $(OBJ)/src/io/store_merge.o $(OBJ)/src/io/store_csv.o: \
    $(wildcard src/io/*.sql)
$(OBJ)/src/emit/page.o: data/report/page.html
$(OBJ)/src/emit/torchrec.o: src/python/neuroshard/_loader.py
$(OBJ)/src/emit/dlrm.o: $(wildcard src/emit/dlrm_*)

# The one file with the build id of the program.
$(O)/build_id.o: $(O)/build_id.c $(OBJ)/flags
	@echo "  CC   $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c $< -o $@

# Files whose content is a setting. They change only if the setting does.
.PHONY: force
$(OBJ)/flags: SETTING = $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL)
$(OBJ)/mpi_flags: SETTING = $(MPI_FLAGS)
$(OBJ)/nvcc_flags: SETTING = $(NVCC) $(CPPFLAGS_ALL) $(NVCC_FLAGS)
$(O)/cxx_flags: SETTING = $(CXX) $(CPPFLAGS_ALL) $(CXX_FLAGS)
$(O)/link_flags: SETTING = $(CC) $(CFLAGS_ALL) $(LDFLAGS) $(MPI_LIBS)
$(OBJ)/datadir: SETTING = $(DATADIR)
$(O)/build_id.c: SETTING = extern const char build_id[]; \
    const char build_id[] = "$(BUILD)";
$(addprefix $(OBJ)/,flags mpi_flags nvcc_flags datadir) \
    $(addprefix $(O)/,cxx_flags link_flags build_id.c): force
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(SETTING))' | cmp -s - $@ || \
	    printf '%s\n' '$(subst ','\'',$(SETTING))' >$@

# Reports missing packages in one sentence, before the compiler prints thirty.
$(O)/needs: .ci/deps
	@mkdir -p $(@D)
	@CC='$(CC)' .ci/deps --missing build
	@touch $@

# --- Tests ----------------------------------------------------------------

UNIT_TESTS  = $(sort $(wildcard tests/unit/*/t_*.c))
PROP_TESTS  = $(sort $(wildcard tests/prop/t_*.c))
FUZZ_TESTS  = $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCHES     = $(sort $(wildcard tests/bench/bench_*.c))
programs    = $(patsubst %.c,$(O)/%,$(1))
# Program that writes a training to files, for tests in PyTorch.
DUMP        = tests/torchrec/training_dump
# Tests of what the default effort finds. They take as long in any size, so
# they belong to test-long, of which .ci/run runs them too. Other tests run the
# same code with less effort.
EFFORT_PROP   = $(addprefix tests/prop/,t_golden_tasks.c t_nets_effort.c)
EFFORT_PYTHON = $(addprefix tests/python/,t_default_effort.py t_tutorial.py)
EFFORT_CLI    = tests/cli/default_screens.sh
EFFORT_TESTS  = $(call programs,$(EFFORT_PROP))
# Tests that sanitizers leave out, because they only repeat searches or trainings
# and compare the answers: t_json.py runs all commands, and unit and property
# tests reach the code below them.
ANSWERS     = $(patsubst %,tests/python/t_%.py,checks interrupt_moments package \
    simplest whatif) $(patsubst %,tests/cli/%.sh,bandwidths chain cluster \
    compare dlrm_v4 drift examples from_stops heeds layout min_width names \
    placement plan_grid screens search_walks torchrec_plans what_if width \
    wire_choice)
# The longest tests run first, so that no core waits for one at the end.
TESTS       = $(call programs,$(filter-out $(EFFORT_PROP),$(PROP_TESTS)) \
    $(UNIT_TESTS) $(FUZZ_TESTS)) \
    $(if $(filter emulated,$(CUDA)),$(O)/tests/emulator/t_emulator)
SANITIZED   = $(filter asan tsan,$(CONFIG))
LEFT_ALONE  = $(EFFORT_PYTHON) $(EFFORT_CLI) $(if $(SANITIZED),$(ANSWERS))
PYTHON_TESTS = $(sort $(filter-out $(LEFT_ALONE),\
    $(wildcard tests/python/t_*.py)))
CLI_TESTS   = $(sort $(filter-out $(LEFT_ALONE),$(wildcard tests/cli/*.sh)))
FAULT_SO    = $(if $(SANITIZED),,$(O)/fault.so)

# A unit test of a room is linked with this room and the ones below it only.
# This proves the layers.
upto_base      = base
upto_core      = core base
upto_device    = device core base
upto_modelfile = modelfile formulas device core base
upto_models    = models modelfile formulas device core base
upto_learning  = $(COSTMODEL) device core base
upto_explain   = explain search emit device core base
upto_cli       = cli explain $(SIBLINGS) device core base
upto        = $(or $(upto_$(1)),$(1) device core base)
room_of     = $(word 3,$(subst /, ,$(1)))
# A fuzz target is a test that replays its corpus, unless libFuzzer runs it.
REPLAY = $(if $(filter fuzz,$(CONFIG)),,$(OBJ)/tests/fuzz/replay.o)
define TEST_RULE
$(O)/$(1): $(OBJ)/$(1).o $(if $(filter tests/fuzz/%,$(1)),$(REPLAY)) \
    $(if $(filter search,$(2)),$(ASSIGNMENT_CHECK)) $(OBJ)/tests/build_id.o \
    $(O)/link_flags \
    $(call archives,$(2)) $(if $(filter device,$(2)),$(EMULATOR)) $(OLD_GLIBC)
	@mkdir -p $$(@D)
	@echo "  LD   $$@"
	$$(Q)$$(LINK) $(foreach r,$(2),$$(LIBS_$(r)))
endef
$(foreach t,$(UNIT_TESTS:.c=),$(eval $(call TEST_RULE,$(t),$(call \
    upto,$(call room_of,$(t))))))
# All other tests are linked with everything but the command line.
$(foreach t,$(PROP_TESTS:.c=) $(BENCHES:.c=) $(FUZZ_TESTS:.c=) $(DUMP),$(eval \
    $(call TEST_RULE,$(t),explain $(SIBLINGS) device core base)))

ifeq ($(CONFIG),fuzz)
$(call programs,$(FUZZ_TESTS)): private LDFLAGS += -fsanitize=fuzzer
endif

# Exhaustive search, to which these tests compare the searches.
$(addprefix $(O)/tests/,unit/search/t_exhaustive prop/t_refusals \
    prop/t_search_tiny prop/t_bound_blocks): \
    $(OBJ)/tests/unit/search/exhaustive.o
# Reference implementation of lookups, for these tests.
$(addprefix $(O)/tests/unit/device/t_lookup_,forward backward): \
    $(OBJ)/tests/unit/device/lookup_ref.o

# -O1 compiles a test in half the time of -O3, and -O0 in half the time of -O1;
# -g1 gives backtraces their lines. Code of a test that does much of its work is
# compiled with -O1.
$(OBJ)/tests/unit/%.o $(OBJ)/tests/prop/%.o $(OBJ)/tests/fuzz/%.o: \
    private CFLAGS_release += -O0 -g1
$(OBJ)/tests/unit/%.o $(OBJ)/tests/prop/%.o $(OBJ)/tests/fuzz/%.o: \
    private CFLAGS_asan += -O0
HOT_TESTS = $(addprefix $(OBJ)/tests/,unit/search/assignment_check.o \
    unit/search/exhaustive.o unit/device/lookup_ref.o unit/base/t_radix_sort.o \
    unit/core/t_profile.o unit/core/t_step.o unit/device/t_lookup_backward.o \
    unit/device/t_stream.o unit/device/t_world_second.o \
    unit/formulas/t_interval.o prop/t_profile_zipf.o prop/t_year.o)
$(HOT_TESTS): private CFLAGS_release += -O1
$(HOT_TESTS): private CFLAGS_asan += -O1

$(OBJ)/%_mpi.o $(O)/%_mpi.tidy: private CPPFLAGS_ALL += $(MPI_INCLUDES)
$(patsubst %.c,$(OBJ)/%.o,$(wildcard src/*/*_mpi.c)): $(OBJ)/mpi_flags

$(O)/tests/emulator/t_emulator: $(O)/tests/emulator/t_emulator.o $(EMULATOR)
	@echo "  LD   $@"
	$(Q)$(LINK)

# t_nvml contains its own stand-in for the NVML library, so it exports its
# symbols.
$(O)/tests/unit/device/t_nvml: private LDFLAGS += -rdynamic

# Stand-ins for NCCL and cuBLAS. The program loads them by their file names.
FAKES = $(addprefix $(O)/fake/,libnccl.so.2 libcublas.so.13)
$(OBJ)/tests/fake/%.o: private CPPFLAGS_ALL += -fPIC
$(O)/fake/libnccl.so.2: $(OBJ)/tests/fake/fake_nccl.o
$(O)/fake/libcublas.so.13: $(OBJ)/tests/fake/fake_cublas.o
$(FAKES):
	@mkdir -p $(@D)
	@echo "  LD   $@"
	$(Q)$(LINK) -shared -Wl,-soname,$(@F)
$(O)/tests/unit/device/t_gemm $(O)/tests/unit/device/t_comm_nccl $(O)/tests/unit/device/t_cublas \
    $(O)/tests/prop/t_execute_training: | $(FAKES)
# t_cublas compares our constants with the header of an installed toolkit.
$(OBJ)/tests/unit/device/t_cublas.o: private CPPFLAGS_ALL += \
    $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include)
# The stand-ins use the emulator's CUDA runtime, which these programs export.
$(if $(EMULATOR),$(O)/neuroshard $(O)/tests/bench/bench_beside \
    $(O)/tests/unit/device/t_gemm $(O)/tests/prop/t_execute_training: \
    private LDFLAGS += -rdynamic)

# The only file that needs GNU's RTLD_NEXT.
$(OBJ)/tests/fault/fault.o $(O)/tests/fault/fault.tidy: \
    private CPPFLAGS_ALL += -D_GNU_SOURCE -fPIC
$(O)/fault.so: $(OBJ)/tests/fault/fault.o
	@echo "  LD   $@"
	$(Q)$(LINK) -shared -ldl

PYTHON_ENV = PYTHONPATH='$(CURDIR)/src/python:$(CURDIR)/tests/torchrec' \
    PYTHONDONTWRITEBYTECODE=1
# $(1): the tests that prove runs. LIMIT is in seconds. A test fails if it
# hangs, or if it is skipped with CI=true for a reason that is not in
# tests/skips. -j4 is twice the number of cores, because tests that measure
# mostly wait for a quiet machine.
LIMIT = 900
run-drawn: LIMIT = 3600
TEST_ENV = NEUROSHARD='$(abspath $(O)/neuroshard)' ROOT='$(CURDIR)' \
    NEUROSHARD_DATA='$(CURDIR)/data' FAULT_SO='$(abspath $(FAULT_SO))' \
    $(PYTHON_ENV) ASAN_OPTIONS=protect_shadow_gap=0:$$ASAN_OPTIONS
PROVE = $(TEST_ENV) \
    prove -j4 -e 'tests/one $(LIMIT)' $(1)

.PHONY: test tests run-tests run-unit-tests
test:
	@CC='$(CC)' .ci/deps test
	@$(AGAIN) run-tests

tests: $(O)/neuroshard $(TESTS) $(EFFORT_TESTS) $(FAULT_SO)

run-tests: tests
	$(Q)$(call PROVE,$(PYTHON_TESTS) $(CLI_TESTS) $(TESTS))

# Finds tests that fail by chance; see tests/repeat.
N    ?= 10
BUSY ?=
# Runs one test with the environment of `make test`: T=tests/unit/core/t_step.c,
# T=tests/cli/plan_reports.sh or T=tests/python/t_json.py.
.PHONY: test-one
test-one: $(O)/neuroshard $(FAULT_SO) $(filter $(O)/%,$(call programs,$(T)))
	$(Q)$(TEST_ENV) tests/one $(LIMIT) $(call programs,$(T))

.PHONY: test-repeat run-test-repeat
test-repeat:
	@CC='$(CC)' .ci/deps test
	@$(AGAIN) run-test-repeat

run-test-repeat: tests
	$(Q)$(TEST_ENV) LIMIT=$(LIMIT) tests/repeat '$(N)' \
	    $(if $(BUSY),--busy) -- $(CLI_TESTS) $(PYTHON_TESTS) $(TESTS)

# Tests whose sizes grow with TEST_SIZE (in C by tap_size). With TEST_SIZE=tiny
# all of run-tests is short enough for CONFIG=asan.
# With a share of the full size, as SIZE=3, only tests that grow with it run;
# ALIKE are those that hardly do.
SIZE ?= full
IS_FULL = $(filter full,$(SIZE))
ALIKE = $(patsubst %,tests/prop/t_%.c,few_samples import_damage intervals \
    renamed report_damage search_random search_tiny year) \
    $(addprefix tests/unit/,learning/t_train.c search/t_replan.c \
    search/t_search.c)
LONG_TESTS = $(filter $(call programs,$(filter-out $(if $(IS_FULL),,$(ALIKE)),\
    $(shell grep -l tap_size $(UNIT_TESTS) $(PROP_TESTS)))),$(TESTS))
LONG_PYTHON = $(if $(IS_FULL),$(shell grep -l TEST_SIZE $(PYTHON_TESTS)))
LONG_CLI   = $(if $(IS_FULL),$(shell grep -l TEST_SIZE $(CLI_TESTS)))

.PHONY: test-long run-test-long run-drawn run-anchors
test-long:
	@CC='$(CC)' .ci/deps test
	@$(AGAIN) run-test-long

run-test-long: run-drawn run-anchors

run-drawn: tests
	$(Q)TEST_SIZE='$(SIZE)' $(call PROVE,$(EFFORT_PYTHON) $(EFFORT_TESTS) \
	    $(EFFORT_CLI) $(LONG_PYTHON) $(LONG_TESTS))
	$(Q)$(if $(LONG_CLI),TEST_SIZE='$(SIZE)' $(call PROVE,$(LONG_CLI)))

ANCHORS = $(O)/tests/bench/bench_anchors
run-anchors: $(ANCHORS)
	$(Q)NEUROSHARD_DATA='$(CURDIR)/data' $< >$<.txt || \
	    { grep '^FAIL' $<.txt; exit 1; }

run-unit-tests: $(TESTS)
	$(Q)$(call PROVE,$(TESTS))

# Mutation testing: changes the program in ways that its tests should notice. It
# is never part of a run of all tests.
SEED    ?= 1
MUTANTS ?= 150

.PHONY: mutants
mutants:
	@CC='$(CC)' .ci/deps test
	@tests/mutants/run --seed '$(SEED)' -n '$(MUTANTS)' \
	    $(if $(RESUME),--resume)

# Checks emitted plans in TorchRec itself, and trainings in PyTorch. The first
# run installs both below build/.
.PHONY: test-torchrec
test-torchrec: $(O)/neuroshard $(O)/$(DUMP)
	$(Q)NEUROSHARD='$(abspath $(O)/neuroshard)' \
	    TRAINING_DUMP='$(abspath $(O)/$(DUMP))' \
	    NEUROSHARD_DATA='$(CURDIR)/data' $(PYTHON_ENV) \
	    prove -v -e tests/torchrec/python tests/torchrec/t_*.py

# Checks pages of `report` in Chromium. SHOTS=DIR keeps screenshots in DIR.
.PHONY: test-report
test-report: $(O)/neuroshard
	@.ci/deps browser || true
	$(Q)$(call PROVE,-v tests/report/t_report.py)

# Tests that use a GPU, real or emulated.
GPU_TESTS = $(filter $(foreach r,device exec microbench, \
    $(O)/tests/unit/$(r)/t_%) $(O)/tests/prop/t_execute_% \
    $(O)/tests/emulator/%,$(TESTS))
OUT   ?= gpu-check
STAGE ?=
SMALL ?= 0

.PHONY: run-gpu-tests gpu-programs gpu-check
run-gpu-tests: gpu-programs $(FAKES)
	$(Q)$(call PROVE,$(GPU_TESTS))
	$(Q)NEUROSHARD='$(abspath $(O)/neuroshard)' tests/cli/run ranks_cuda_run \
	    gpu_check_run

gpu-programs: $(O)/neuroshard $(GPU_TESTS) \
    $(if $(EMULATOR),$(FAKES)) \
    $(call programs,$(addprefix tests/bench/bench_,kernels.c execute.c \
        figures.c beside.c page.c))

# Builds an archive with one build per CUDA toolkit, so that it runs under
# drivers of each; with CUDA=emulated one build without a toolkit.
CUDA_HOMES = $(if $(filter emulated,$(CUDA)),emulated,$(CUDA_HOME))
archived   = build/gpu-archive/cuda-$(if $(filter emulated,$(1)),emulated,$(shell \
    $(1)/bin/nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))

.PHONY: gpu-archive
gpu-archive:
	@$(foreach h,$(CUDA_HOMES),$(AGAIN) CONFIG=release STATIC=1 MPI=0 \
	    $(if $(filter emulated,$(h)),,CUDA=1 NVCC=$(h)/bin/nvcc) \
	    O=$(call archived,$(h)) gpu-programs &&) \
	.ci/gpu-archive neuroshard-gpu-$(VERSION) build/gpu-archive \
	    $(foreach h,$(CUDA_HOMES),$(call archived,$(h)))

gpu-check: gpu-programs
	@$(if $(EMULATOR),EMULATOR_DEVICES=$${EMULATOR_DEVICES:-2} \
	    LD_LIBRARY_PATH='$(abspath $(O))/fake' )\
	    tests/gpu/check --build '$(O)' --out '$(OUT)' \
	    $(if $(filter 1,$(SMALL)),--small) $(STAGE)

.PHONY: demo bench bench-plain bench-ablation bench-products bench-package \
    bench-busy bench-loaded bench-empty bench-wire bench-wire-training \
    bench-wire-groups bench-torchrec-wire bench-unknown-wire bench-tier-rivals fuzz \
    run-fuzz
DEMO = ./neuroshard plan data/tables/mlperf_dlrm_dcnv2_multihot.csv --gpus 8
demo:
	@CC='$(CC)' .ci/deps build
	@$(AGAIN) all
	@echo; echo '$$ $(DEMO)'
	@$(DEMO)

# These benchmarks take an hour or more each, so they run only by name.
SLOW_BENCHES = tests/bench/bench_plain.c tests/bench/bench_ablation.c \
    tests/bench/bench_wire.c
bench-plain bench-ablation bench-products: bench-%: $(O)/tests/bench/bench_%
	@NEUROSHARD_DATA='$(CURDIR)/data' $<

bench: $(call programs,$(filter-out $(SLOW_BENCHES),$(BENCHES)))
	@failed=; for bench in $^; do \
	    echo; echo "== $${bench##*/}"; \
	    NEUROSHARD_DATA='$(CURDIR)/data' "$$bench" || \
	        failed="$$failed $${bench##*/}"; \
	done; \
	$(MAKE) --no-print-directory bench-package || \
	    failed="$$failed bench-package"; \
	$(MAKE) --no-print-directory bench-busy || failed="$$failed bench-busy"; \
	test -z "$$failed" || { echo "missed a limit:$$failed"; exit 1; }

bench-package: $(O)/neuroshard
	@echo; echo "== package"
	@NEUROSHARD='$(abspath $(O)/neuroshard)' $(PYTHON_ENV) \
	    tests/bench/package.py

bench-busy: $(O)/neuroshard
	@echo; echo "== busy"
	@NEUROSHARD='$(abspath $(O)/neuroshard)' NEUROSHARD_DATA='$(CURDIR)/data' \
	    tests/bench/busy.py

bench-loaded: $(O)/neuroshard
	@NEUROSHARD='$(abspath $(O)/neuroshard)' tests/bench/loaded

bench-empty:
	@$(AGAIN) CUDA=emulated O=build/$(CONFIG)-emulated \
	    build/$(CONFIG)-emulated/neuroshard
	@tests/bench/empty build/$(CONFIG)-emulated

bench-wire: $(O)/neuroshard $(O)/tests/bench/bench_wire
	@$(if $(filter 1,$(MPI)),NEUROSHARD='$(abspath $(O)/neuroshard)' \
	    NEUROSHARD_DATA='$(CURDIR)/data' \
	    BENCH_WIRE='$(abspath $(O)/tests/bench/bench_wire)' \
	    tests/wire/bench.py $(if $(filter 1,$(SMALL)),--small) \
	    $(if $(KEEP),--keep '$(KEEP)'),echo \
	    'bench-wire skipped: the program is built without MPI')

bench-wire-training: $(O)/neuroshard
	@$(if $(filter 1,$(MPI)),NEUROSHARD='$(abspath $(O)/neuroshard)' \
	    NEUROSHARD_DATA='$(CURDIR)/data' \
	    tests/wire/train.py $(if $(filter 1,$(SMALL)),--small) \
	    $(if $(KEEP),--keep '$(KEEP)'),echo \
	    'bench-wire-training skipped: the program is built without MPI')

bench-wire-groups: $(O)/neuroshard
	@$(if $(filter 1,$(MPI)),NEUROSHARD='$(abspath $(O)/neuroshard)' \
	    NEUROSHARD_DATA='$(CURDIR)/data' \
	    tests/wire/groups.py $(if $(filter 1,$(SMALL)),--small) \
	    $(if $(KEEP),--keep '$(KEEP)'),echo \
	    'bench-wire-groups skipped: the program is built without MPI')

# TorchRec comes from the virtual environment of test-torchrec.
TORCHREC_PYTHON = $(or $(TORCHREC_VENV),$(CURDIR)/build/torchrec)/bin/python
bench-torchrec-wire: $(O)/neuroshard
	@$(if $(filter 1,$(MPI)),tests/torchrec/python -c pass && \
	    NEUROSHARD='$(abspath $(O)/neuroshard)' \
	    NEUROSHARD_DATA='$(CURDIR)/data' PYTHONPATH='$(CURDIR)/src/python' \
	    PYTHON='$(TORCHREC_PYTHON)' \
	    tests/wire/torchrec_jobs.py $(if $(filter 1,$(SMALL)),--small) \
	    $(if $(KEEP),--keep '$(KEEP)'),echo \
	    'bench-torchrec-wire skipped: the program is built without MPI')

bench-unknown-wire: $(O)/neuroshard
	@NEUROSHARD='$(abspath $(O)/neuroshard)' NEUROSHARD_DATA='$(CURDIR)/data' \
	    tests/bench/unknown_wire.py $(EFFORT)

bench-tier-rivals: $(O)/neuroshard
	@NEUROSHARD='$(abspath $(O)/neuroshard)' NEUROSHARD_DATA='$(CURDIR)/data' \
	    tests/bench/tier_rivals.py $(LIMIT_S)

fuzz:
	@.ci/deps fuzz
	@$(AGAIN) CONFIG=fuzz CC=clang CUDA=0 run-fuzz

run-fuzz: $(call programs,$(FUZZ_TESTS))
	@tests/fuzz/dig '$(T)' '$(O)/found' $^

# --- Checks that run nothing ----------------------------------------------

C_FILES = $(sort $(filter-out $(if $(filter 1,$(MPI)),,%_mpi.c),$(wildcard \
    $(foreach r,$(ROOMS),$(DIR_$(r))/*.c) \
    tests/*/*.c tests/unit/*/*.c)))
H_FILES = $(sort $(filter-out tests/emulator/%,$(wildcard \
    $(foreach r,$(ROOMS),$(DIR_$(r))/*.h) \
    tests/*.h tests/*/*.h tests/unit/*/*.h)))
CU_FILES = $(sort $(wildcard $(foreach r,$(ROOMS),$(DIR_$(r))/*.cu \
    $(DIR_$(r))/*.cuh) $(foreach d,. cub/device device, \
    $(addprefix tests/emulator/$(d)/,*.cpp *.cuh *.h))))
SCRIPTS = .ci/run .ci/deps .ci/banner .ci/gpu-archive .ci/wheel .ci/wheel-tag \
    tests/cli/run tests/cli/common tests/one tests/repeat tests/fuzz/dig data/completion/neuroshard.bash \
    tests/gpu/check tests/gpu/count tests/gpu/resume tests/bench/loaded \
    tests/bench/empty tests/wire/lab tests/mutants/run \
    tests/torchrec/python tests/torchrec/suite \
    $(sort $(wildcard tests/cli/*.sh tests/check/*.sh))
PYTHON_FILES = $(sort $(wildcard tests/python/*.py tests/wheel/*.py \
    tests/report/*.py \
    tests/bench/*.py tests/wire/*.py tests/check/*.py) \
    $(addprefix tests/torchrec/,t_dlrm.py t_examples.py t_training.py \
    unsharded.py))
CHECKS = format layers includes modules sizes headers plain words commits pages \
    names shell python tidy kernels

.PHONY: check run-check $(CHECKS:%=check-%)
check:
	@.ci/deps --missing check
	@$(AGAIN) --keep-going --output-sync=target CUDA=0 run-check

run-check: $(CHECKS:%=check-%)
	@echo "check: all is well"

# clang-format does not break lines of comments, because it would destroy
# tables.
check-format:
	@echo "  CHECK format"
	$(Q)clang-format --dry-run -Werror $(C_FILES) $(H_FILES) $(CU_FILES)
	$(Q)! awk 'length > 80 { print FILENAME ":" FNR ": longer than 80" }' \
	    $(C_FILES) $(H_FILES) $(CU_FILES) | grep .

check-layers:
	@echo "  CHECK layers and names"
	$(Q)tests/check/layers.sh

# Files of tests/ are not checked: after the header of the code that they test,
# their includes may be in any order.
check-includes:
	@echo "  CHECK includes"
	$(Q)tests/check/includes.sh $(filter-out tests/%,$(C_FILES) $(H_FILES) \
	    $(CU_FILES))

check-modules:
	@echo "  CHECK modules"
	$(Q)tests/check/modules.py $(foreach r,$(ROOMS),$(DIR_$(r)))

check-sizes:
	@echo "  CHECK sizes"
	$(Q)tests/check/sizes.sh $(filter-out tests/%,$(C_FILES) $(H_FILES) \
	    $(CU_FILES)) $(wildcard src/python/neuroshard/*.py)

check-headers:
	@echo "  CHECK headers"
	$(Q)CC='$(CC)' tests/check/headers.sh $(CPPFLAGS_ALL) -- $(H_FILES)

# Texts that are held to plain English.
PLAIN_FILES = $(shell git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' '*.sql' \
    '*.py' '*.sh' '*.md' 'man/*' Makefile) $(filter-out %.bash,$(SCRIPTS))
check-plain:
	@echo "  CHECK plain"
	$(Q)tests/check/plain.py $(PLAIN_FILES)

check-words:
	@echo "  CHECK words"
	$(Q)tests/check/words.sh $(filter-out tests/%,$(C_FILES) $(H_FILES) \
	    $(CU_FILES))

check-commits:
	@echo "  CHECK commits"
	$(Q)tests/check/commits.sh

check-pages: $(O)/neuroshard
	@echo "  CHECK pages"
	$(Q)tests/check/pages.sh $< $(O)/stage

check-names: $(O)/neuroshard
	@echo "  CHECK names"
	$(Q)tests/check/names.sh $< $(O)/names

check-shell:
	@echo "  CHECK shell"
	$(Q)shellcheck $(SCRIPTS)

# With CI=true .ci/deps has installed mypy and flake8.
check-python:
ifneq ($(and $(shell command -v mypy),$(shell command -v flake8))$(CI),)
	@echo "  CHECK python"
	$(Q)mypy --strict --config-file src/python/pyproject.toml \
	    --cache-dir '$(O)/mypy' src/python/neuroshard
	$(Q)flake8 --extend-ignore=E203 src/python $(PYTHON_FILES)
else
	@echo "  SKIP  python: no mypy, or no flake8"
endif

# Registers and memory of our kernels, as ptxas reports them. They are compared
# only with nvcc of the release in the table, because another nvcc compiles
# differently.
KERNEL_TABLE = src/device/KERNELS.txt
KERNEL_LOGS  = $(patsubst %.cu,$(OBJ)/%.ptxas,\
    $(sort $(wildcard src/device/*.cu)))
NVCC_RELEASE = $(if $(NVCC),$(shell $(NVCC) --version | \
    sed -n 's/.*release \([0-9.]*\).*/\1/p'))

.PHONY: kernel-table
kernel-table: $(KERNEL_LOGS)
	$(Q)tests/check/kernels.sh $(NVCC_RELEASE) $^ >$(O)/kernels
	@mv $(O)/kernels $(KERNEL_TABLE)
	@cat $(KERNEL_TABLE)

ifeq ($(NVCC_RELEASE),$(shell sed -n \
    '1s/.*nvcc \([0-9.]*\) .*/\1/p' src/device/KERNELS.txt 2>/dev/null))
check-kernels: $(KERNEL_LOGS)
	@echo "  CHECK kernels"
	$(Q)tests/check/kernels.sh $(NVCC_RELEASE) $^ >$(O)/kernels
	$(Q)diff $(KERNEL_TABLE) $(O)/kernels
else
check-kernels:
	@echo "  SKIP  kernels: no nvcc of the release in $(KERNEL_TABLE)"
endif

# TIDY=REV checks only the files that have changed since commit REV, or all
# files if git does not know REV.
TIDY ?=
TIDY_FILES = $(if $(TIDY),$(filter $(C_FILES),$(shell git diff --name-only \
    --diff-filter=d '$(TIDY)' 2>/dev/null || echo $(C_FILES))),$(C_FILES))

check-tidy: $(TIDY_FILES:%.c=$(O)/%.tidy)

# One process per file: clang-tidy 14 reports false va_list errors if it gets
# many files. The object file is a prerequisite because its .d file lists the
# headers.
$(O)/%.tidy: %.c $(OBJ)/%.o .clang-tidy tests/.clang-tidy
	@echo "  TIDY $<"
	@mkdir -p $(@D)
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $< -- \
	    $(CPPFLAGS_ALL) \
	    -DNEUROSHARD_DATADIR='""' -std=c11 $(call isa,$<) 2>$@.log || \
	    { cat $@.log; exit 1; }
	@mv $@.log $@

# --- Installing -----------------------------------------------------------

# Data that the program reads. Measurements are left out: only training needs
# them.
DATA_FILES = $(shell find data -type f -not -path 'data/measurements/*')
PAGES      = $(sort $(wildcard man/*.[1-9]))
BASH_COMPLETION = $(DESTDIR)$(PREFIX)/share/bash-completion/completions/neuroshard
ZSH_COMPLETION  = $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_neuroshard
page_dir   = $(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(1)))

.PHONY: install uninstall deps clean help
install: $(O)/neuroshard
	install -D -m 755 $< $(DESTDIR)$(BINDIR)/neuroshard
	@for file in $(DATA_FILES:data/%=%); do \
	    install -D -m 644 "data/$$file" "$(DESTDIR)$(DATADIR)/$$file"; done
	install -D -m 644 data/completion/neuroshard.bash $(BASH_COMPLETION)
	install -D -m 644 data/completion/_neuroshard $(ZSH_COMPLETION)
	@$(foreach p,$(PAGES),install -D -m 644 $(p) \
	    $(call page_dir,$(p))/$(notdir $(p)) &&) true

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/neuroshard $(BASH_COMPLETION) $(ZSH_COMPLETION)
	rm -f $(foreach p,$(PAGES),$(call page_dir,$(p))/$(notdir $(p)))
	rm -f $(DATA_FILES:data/%=$(DESTDIR)$(DATADIR)/%)
	test ! -d $(DESTDIR)$(DATADIR) || \
	    find $(DESTDIR)$(DATADIR) -depth -type d -empty -delete

# The wheel is for Python on any machine. So its program contains the libc, too,
# and cannot load libraries: no CUDA, no MPI.
WHEEL_BUILD = $(AGAIN) CONFIG=release CUDA=0 MPI=0 STATIC=1 LDFLAGS=-static \
    O=build/wheel OBJ=build/release$(COMPILER)

.PHONY: wheel test-wheel run-wheel run-test-wheel
wheel test-wheel:
	@CC='$(CC)' .ci/deps wheel
	@$(WHEEL_BUILD) run-$@

run-wheel: $(O)/neuroshard
	@.ci/wheel $< $(O)/wheel $(DATA_FILES)

# Compares the installed wheel with the program that is built here.
run-test-wheel: run-wheel
	$(Q)WHEEL="$$(echo $(abspath $(O))/wheel/*.whl)" \
	    $(call PROVE,tests/wheel/t_wheel.py)

deps:
	@CC='$(CC)' .ci/deps test

clean:
	rm -rf build neuroshard

define HELP
make [TARGET] [SWITCH=VALUE]...

  all        ./neuroshard (what `make` alone does)
  demo       install what is needed, build, plan the MLPerf DLRM tables
  test       install what is needed, build, run all tests
  test-torchrec  emitted plans in TorchRec and trainings in PyTorch, on the CPU;
             installed by pip in TORCHREC_VENV=build/torchrec; skipped where it
             cannot be had;
             DLRM_DIR: where facebookresearch/dlrm has dlrm_main.py
  test-report  pages of `report` in headless Chromium, installed like the rest;
             skipped where it cannot be had; SHOTS=DIR keeps pictures
  test-long  the tests that draw their inputs, on many more of them, those of
             the default effort, and the bounds on what others have measured;
             SIZE=7 goes 7 % of the way from those of test
  test-one   one test: T=tests/unit/core/t_step.c, T=tests/cli/plan_reports.sh
  test-repeat  the tests of test N=10 times in other orders, every second time
             beside two busy loops (BUSY=1: every time); goes on where it was
             stopped; failures are in build/repeat
  mutants    changes the program in MUTANTS=150 places drawn by SEED=1, one at a
             time, and prints the share that the tests notice; RESUME=1 goes on
             where the last run was stopped
  check      format, clang-tidy, layers, includes, modules, sizes, headers,
             manual pages, names, shell, python;
             TIDY=REV: clang-tidy only on files changed since that commit
  bench      tables of measured times
  bench-plain  the search beside the simplest one, on lists drawn uneven
  bench-ablation  what each part of the search buys
  bench-products  40 MLPs, executed, and predicted from measured products
  bench-package  what a plan through Python costs beside the command
  bench-busy  training on several threads, and measuring on a busy machine
  bench-loaded  whether a busy machine is seen from the first sample
  bench-empty  what the host costs a sample on a GPU whose kernels do nothing
  bench-wire  exchanges and plans over links of a known rate, beside what is
             predicted; needs root, iproute2 and Open MPI; KEEP=DIR keeps what
             was measured and goes on from there, SMALL=1 takes some minutes
  bench-wire-training  trainings of two hosts over links of a known rate, beside
             what is predicted; needs, KEEP and SMALL as for bench-wire
  bench-wire-groups  trainings of two hosts in one and in two sharding groups, beside
             what is predicted; needs, KEEP and SMALL as for bench-wire
  bench-torchrec-wire  jobs of TorchRec over links of a known rate, by its own plan
             and by ours in turns; needs, KEEP and SMALL as for bench-wire, and
             what test-torchrec installs; about half an hour
  bench-unknown-wire  plan --wire on twelve lists, beside plans made at ten fixed
             bandwidths; EFFORT=60000 takes some minutes
  bench-tier-rivals  plan --tiers on lists that do not fit their GPUs, beside
             rules for tables in host memory; LIMIT_S=8 is the time of a plan
  gpu-check  what is worth knowing of this machine's GPU, into OUT=gpu-check;
             STAGE=correct|ceilings|products|collect|train|validate does one part,
             SMALL=1 only shows that all of it works
  gpu-programs  what gpu-check needs (STATIC=1: for another machine)
  gpu-archive  that in one file for a machine without packages; CUDA_HOMES='A B'
             takes in a build by each toolkit
  kernel-table  src/device/KERNELS.txt: registers of our kernels
  fuzz       dig in every parser for T seconds each (clang)
  deps       install what building and testing need (Debian, Ubuntu)
  install    program, data, manual pages and completions of bash and zsh;
             uninstall takes them away
  wheel      the program, its data and src/python, for pip install
  test-wheel  installs the wheel in an environment of its own and plans there
  clean      remove all that was built

  CONFIG=release   or debug, asan, tsan
  CC=gcc           or clang
  BUILD=ID         what --version calls the build (default: the commit)
  CUDA=0|1         with the bodies for NVIDIA GPUs (default: nvcc is there)
  CUDA=emulated    with those bodies run by the CPU, for tests
  MPI=0|1          several processes for one plan (default: mpicc is there)
  STATIC=1         OpenBLAS, SQLite, jansson, xxHash and zlib in the program
  O=DIR            build there, not in build/CONFIG
  T=60             seconds for each target of make fuzz
  V=1              show the commands
  PREFIX=/usr/local, BINDIR, MANDIR, DATADIR, DESTDIR
endef
help:
	$(info $(HELP))@:

-include $(shell find $(sort $(O) $(OBJ)) -name '*.d' 2>/dev/null)
