# Ashlar: build, run, test. `make help` lists every target and variable.
#
# One ELF for every loader, linked twice: the first link has an empty symbol table, `nm` of it fills the second one's
# (boot/symbols.awk). Nothing in the ELF depends on the folder, the user or the time: two builds are identical.
# Before anything else runs, tests/setup/deps.sh looks for everything that a goal needs and installs missing packages after asking.

#: Variables
#: BUILD      folder for everything that is built [build; build/san with DEBUG=san]
SAN := $(if $(filter san,$(DEBUG)),1,0)
BUILD ?= build$(if $(filter 1,$(SAN)),/san)
#: CC         compiler of the kernel: gcc or clang [gcc]
ifeq ($(origin CC),default)
CC := gcc
endif
#: DEBUG      1: compile in the check of the lock order and other expensive checks; san: UBSan and a checker of frames and stacks [0]
DEBUG ?= 0
#: CPUS       CPUs of the guest [32]
CPUS ?= 32
#: MEM        RAM of the guest; the host backs only what is touched [12G]
MEM ?= 12G
#: NODES      NUMA nodes of the guest, with equal shares of CPUs and RAM [1]
NODES ?= 1
#: FIRMWARE   bios or uefi (GRUB from the ISO), efi (BOOTX64.EFI, without GRUB), pvh or microvm (QEMU loads the ELF) [bios]
FIRMWARE ?= bios
#: ACCEL      kvm, tcg, icount (the clock counts instructions; icount-5: 32 ns each), or auto: KVM where it can run the guest [auto]
ACCEL ?= auto
#: CPU        CPU model and flags in QEMU's words [max]
CPU ?= max
#: CMDLINE    the kernel's command line, e.g. CMDLINE="test=mm.*"; make help-options lists its words []
CMDLINE ?=
#: TIMEOUT    seconds after which a guest counts as hung; 0: never [make run: 0; each test has its own]
TIMEOUT ?= 0
#: PROGRAM    make run, monitor, iso, bench WHAT=programs: an ELF of x86-64 Linux to run, as a shell would: PROGRAM="HOME=/ ./a.out -v 'a b'"; no: build a kernel or library that runs none []
PROGRAM ?=
#: FILES      files and folders that it can open: the contents of a relative folder in /, absolute paths as they are; make test WHAT=replay: a folder of texts that describe machines; make bench: what WHAT compares []
FILES ?=
#: FILES_OUT  make run: a folder that receives the files that the program writes, byte by byte []
FILES_OUT ?=
#: PAYLOAD    folder with your own program in C or C++, linked instead of tests and benchmarks, e.g. tests/payload/gups []
PAYLOAD ?=
#: WHAT       make test, make bench: what to run; see below; make counts: accept the new counts, and say in CHANGELOG.md that WHAT changed them []
ifneq ($(origin WHAT),command line)
override WHAT :=
endif
#: T          make test, make bench: run only what matches, e.g. T='mm.hvo.*', WHAT=machines T='cpu-*', make bench T=hvo,clear []
T ?=
#: N          make test, make explore: how much: schedules, hours of soak, operations of soak-alloc, calls of fuzz-calls, seconds of each fuzzer, mutants, runs; make bench WHAT=against: turns []
N ?=
#: SEED       make test, make explore: seed of random numbers, or a schedule to replay [1]; make run: CPUs pause as it says, and others run []
SEED ?= 1
# The seed of a guest whose CPUs pause at atomic accesses, fences and messages; QEMU then runs the next one.
pause_seed ?= $(if $(filter run,$(MAKECMDGOALS)),$(if $(filter command,$(firstword $(origin SEED))),$(SEED)))
#: DEV        make usb: the disk of the stick, a whole disk such as /dev/sdb []
DEV ?=
# Folder for what is fetched: QEMU 10, Linux, programs of others. make clean keeps it.
TOOLS ?= build/tools

ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:
SHELL := /bin/sh
export YES CI TOOLS BUILD

ifeq ($(origin LD),default)
LD := ld
endif
ifeq ($(origin CXX),default)
CXX := $(if $(filter clang%,$(CC)),clang++,g++)
endif
NM ?= nm
OBJCOPY := objcopy
ifeq ($(origin AR),default)
AR := ar
endif
OBJ := $(BUILD)/kernel
# Folder for linked files. With PAYLOAD it is another one, so that the two links do not disturb each other; they share the kernel's objects.
OUT := $(if $(PAYLOAD),$(BUILD)/payload/$(notdir $(PAYLOAD:%/=%)),$(BUILD)$(if $(pause_seed),/pause))
KERNEL := $(OUT)/ashlar.elf

comma := ,
# A text as one word of the shell.
quote = '$(subst ','\'',$(1))'
sources_in = $(sort $(foreach dir,$(1),$(wildcard $(dir)/*.c $(dir)/*.S)))
cxx_in = $(sort $(wildcard $(1)/*.cpp $(1)/*.cc))
# A folder and its rooms, which lie one level below it.
with_rooms = $(foreach dir,$(1),$(dir) $(patsubst %/,%,$(wildcard $(dir)/*/)))
# Nothing outside of kernel/program names it, so PROGRAM=no leaves it out, with its cases.
ifeq ($(PROGRAM),no)
override PROGRAM :=
LEFT_OUT := kernel/program/% $(shell grep -lE '"(kernel/program/|tests/kernel/program_)' tests/kernel/*.c tests/bench/*.c)
endif
LIB_SOURCES := $(filter-out $(LEFT_OUT),$(call sources_in,boot $(call with_rooms,arch/x86_64 kernel mm)$(if $(filter 1,$(SAN)), tests/san)))
PROGRAM_SOURCES := $(strip $(if $(PAYLOAD),$(call sources_in,$(PAYLOAD:%/=%)) $(call cxx_in,$(PAYLOAD:%/=%)), \
	$(filter-out $(LEFT_OUT),$(call sources_in,tests/kernel tests/bench))))
ifeq ($(PROGRAM_SOURCES),)
$(error PAYLOAD=$(PAYLOAD): no *.c, *.S, *.cpp or *.cc is there)
endif
SOURCES := $(LIB_SOURCES) $(PROGRAM_SOURCES)
LIB_OBJECTS := $(LIB_SOURCES:%=$(OBJ)/%.o)
PROGRAM_OBJECTS := $(PROGRAM_SOURCES:%=$(OBJ)/%.o)
OBJECTS := $(LIB_OBJECTS) $(PROGRAM_OBJECTS)
# Tests and benchmarks are linked to the kernel's objects, and programs of users to the library (see there).
LIBRARY := $(BUILD)/lib/ashlar.o $(BUILD)/lib/runtime.o
LINKED := $(if $(PAYLOAD),$(LIBRARY),$(LIB_OBJECTS)) $(PROGRAM_OBJECTS)

# Likewise with SEED= of make run: mm/ and kernel/core are compiled once more, with points at which CPUs pause.
ifneq ($(pause_seed),)
$(if $(PAYLOAD),$(error SEED=$(pause_seed) is for the kernel's own cases, without PAYLOAD))
PAUSED := $(filter mm/%.c kernel/core/%.c,$(LIB_SOURCES)) $(wildcard tests/pause/*.c)
LINKED := $(filter-out $(PAUSED:%=$(OBJ)/%.o),$(LINKED)) $(PAUSED:%=$(OUT)/%.o)
override ACCEL := $(if $(filter icount%,$(ACCEL)),$(ACCEL),icount-5)
override CMDLINE := $(strip $(CMDLINE) test.pause_seed=$(pause_seed))
endif

VERSION := $(shell cat VERSION)
INCLUDES := -I. -Iarch/x86_64/include
# Paths are mapped away so that the folder leaves no trace in the ELF.
COMMON := -g -ffile-prefix-map=$(CURDIR)=. $(INCLUDES) -DASHLAR_VERSION=$(VERSION) $(if $(filter 1,$(DEBUG)),-DASHLAR_DEBUG)
# No frame takes more than a quarter of a CPU's stack of 16 KiB (make lint finds the longest chain of calls). A word guards the arrays on
# the stack (arch/x86_64/cpu/stack_guard.c). Vector registers are off because interrupts save none, and the red zone is off because
# interrupts use the stack. Backtraces need frame pointers. A function of a table has the parameters of its table, whether it uses them or
# not, so unused ones are no error.
KERNEL_CFLAGS := -std=gnu11 -O2 -ffreestanding -fno-pic -fno-pie -mcmodel=kernel -mno-red-zone -mgeneral-regs-only \
	-fno-omit-frame-pointer -fstack-protector-strong -mstack-protector-guard=global \
	-fno-asynchronous-unwind-tables -fcf-protection=none -Wframe-larger-than=4096 -Wall -Wextra -Wshadow -Wno-unused-parameter -Werror $(COMMON)
# The vDSO runs in ring 3: a shared object that kernel/program/vdso.c includes as it is. The assembler looks for it in its folder.
VDSO := $(BUILD)/vdso/vdso.so
VDSO_CFLAGS := -std=gnu11 -O2 -ffreestanding -fPIC -fvisibility=hidden -mgeneral-regs-only -fno-stack-protector \
	-fno-asynchronous-unwind-tables -fcf-protection=none -Wall -Wextra -Wno-unused-parameter -Werror -I.
VDSO_LDFLAGS := -m elf_x86_64 -shared -s -soname=linux-vdso.so.1 --hash-style=both --build-id=none --fatal-warnings -z noexecstack \
	-z norelro -z max-page-size=0x1000 -T kernel/program/vdso/vdso.lds
KERNEL_CFLAGS += -Wa,-I$(dir $(VDSO))
# Under gcc's sanitizers some code must not be checked: the checkers themselves, and the code that walks stacks. The
# checks cause false warnings of gcc's flow analysis, so -Wmaybe-uninitialized is off.
ifeq ($(SAN),1)
KERNEL_CFLAGS += -DASHLAR_SAN -fsanitize=undefined -Wno-maybe-uninitialized
SAN_ADDRESS := -fsanitize=kernel-address --param asan-instrumentation-with-call-threshold=0 --param asan-stack=0 \
	--param asan-globals=0
$(foreach dir,mm kernel tests/kernel tests/bench $(PAYLOAD:%/=%),$(BUILD)/kernel/$(dir)/%.c.o): KERNEL_CFLAGS += $(SAN_ADDRESS)
$(BUILD)/kernel/tests/san/%.c.o: KERNEL_CFLAGS += -fno-sanitize=all
endif
# Programs of users may use vector registers: nothing else runs on their CPU, and interrupts leave the registers alone
# (arch/x86_64/cpu/cpu.c).
PAYLOAD_CFLAGS = $(filter-out -mgeneral-regs-only -Werror,$(KERNEL_CFLAGS))
# C++ without a runtime: no exceptions, no type information, no locks around static variables of functions. Objects with a destructor that
# live until the end are never destroyed. Options leave members of their structure out, which -Wextra reports in C++ only, and functions may have
# the names of structures, which -Wshadow reports.
CXX_FLAGS := -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-use-cxa-atexit -Wno-missing-field-initializers
PAYLOAD_CXXFLAGS = -std=c++17 $(CXX_FLAGS) $(filter-out -std=gnu11 -Wshadow,$(PAYLOAD_CFLAGS))
KERNEL_ASFLAGS := -Werror -Wa,--fatal-warnings $(COMMON)
KERNEL_LDFLAGS := -m elf_x86_64 -nostdlib -static -no-pie --build-id=none --fatal-warnings -z noexecstack \
	-z max-page-size=0x1000 -T linker.ld

# ---- missing packages are installed before any rule runs ---------------------------------------------------------

NEEDS_all := build
NEEDS_kernel := build
NEEDS_clean :=
NEEDS_help :=
NEEDS_deps := all
NEEDS_iso := iso
NEEDS_usb := iso
NEEDS_host := host
NEEDS_host-asan := host
NEEDS_host-tsan := host
NEEDS_host-msan := msan
NEEDS_host-fast := host
NEEDS_host-native := host
NEEDS_host-replay := host
NEEDS_run := run
NEEDS_help-options := run
NEEDS_monitor := run
NEEDS_debug := debug
NEEDS_lint := lint
NEEDS_check := test lint
NEEDS_counts := test
NEEDS_test := test
NEEDS_test/again := test
NEEDS_test/matrix := test
NEEDS_test/huge := test
NEEDS_test/machines := machines
NEEDS_test/bare := bare
NEEDS_test/msan := msan
NEEDS_test/replay := host
NEEDS_test/programs := test
NEEDS_test/soak := host run
NEEDS_test/soak-alloc := host
NEEDS_test/mutants := test
NEEDS_test/mutants-random := test machines
NEEDS_test/models := test
NEEDS_test/prove := test
NEEDS_test/fuzz := fuzz
NEEDS_test/fuzz-keep := fuzz
NEEDS_test/fuzz-calls := host
NEEDS_test/coverage := coverage
NEEDS_test/long := proof
NEEDS_test/proof := test
NEEDS_bench := host run bench
NEEDS_bench/compare := build
NEEDS_bench/against := host run
NEEDS_bench/linux := run bench
NEEDS_bench/balloon := run bench
NEEDS_bench/native := host
NEEDS_bench/icount := run
# make test WHAT=matrix makes the target test/matrix.
goals := $(foreach goal,$(or $(MAKECMDGOALS),all),$(goal)$(if $(WHAT),$(if $(filter test bench,$(goal)),/$(WHAT))))
needs := $(sort $(if $(and $(filter %.cpp %.cc,$(PROGRAM_SOURCES)),$(filter g++,$(CXX))),cxx) $(foreach goal,$(goals),$(if $(filter undefined,$(origin NEEDS_$(goal))),build,$(NEEDS_$(goal)))))
ifneq ($(and $(needs),$(if $(findstring n,$(filter-out -%,$(firstword $(MAKEFLAGS)))),,run)),)
ifneq ($(shell CC='$(CC)' YES='$(YES)' tests/setup/deps.sh $(needs) >&2; echo $$?),0)
$(error Not everything needed is here: see above)
endif
# A wrong word is refused before anything is built. MAKEOVERRIDES has the words that were typed, and a goal without needs may be none.
unusual := $(foreach goal,$(goals),$(if $(or $(findstring /,$(goal)),$(filter-out undefined,$(origin NEEDS_$(goal)))),,$(goal)))
WORDS = $(foreach key,CPUS CPU MEM NODES FIRMWARE ACCEL TIMEOUT T,$(call quote,$(key)=$($(key))))
# Blanks in values are escaped in MAKEOVERRIDES; only the names are wanted.
space := $() $()
TYPED = $(foreach word,$(subst \$(space),_,$(MAKEOVERRIDES)),$(call quote,$(word)))
ifneq ($(if $(strip $(MAKEOVERRIDES)$(WHAT)$(unusual)),$(shell tests/qemu/typed.py $(goals) -- $(WORDS) -- $(TYPED) >&2; echo $$?),0),0)
$(error A word cannot be used: see above)
endif
endif

#: Targets

# A line for each file that is compiled. On a terminal, if some objects of the folder $(2) are missing or all are built again, one line for
# all of them, which moves: the recipe of FOLDER/flags has written to FOLDER/compiles how many they are, and each file adds a line.
# The cursor stays at the beginning, so that what a compiler says overwrites it.
compiling = if read total <$(2)/compiles && [ $$total -gt 1 ] && $(on_terminal); then echo >>$(2)/compiles; n=$$(($$(wc -l <$(2)/compiles) - 1)); \
	printf '\r\033[K  %-7s %d of %d %s\r' '$(1)' $$n $$((n > total ? n : total)) '$(3)'; else printf '  %-7s %s\n' '$(1)' '$(3)'; fi
on_terminal = [ -t 1 ] && [ "$${TERM:-dumb}" != dumb ]
# A line that stays.
making = if $(on_terminal); then printf '\r\033[K'; fi; printf '  %-7s %s\n' '$(1)' '$(2)'
# Replace FOLDER/flags if they changed, and count the objects $(2) that are to be compiled.
keep_flags = if cmp -s $(1)/flags.new $(1)/flags; then rm $(1)/flags.new; echo $(words $(filter-out $(wildcard $(2)),$(2))); \
	else mv $(1)/flags.new $(1)/flags; echo $(words $(2)); fi >$(1)/compiles

.PHONY: all kernel
all: kernel ## build the kernel, $(BUILD)/ashlar.elf (default)
kernel: $(KERNEL)

# ---- the kernel --------------------------------------------------------------------------------------------------

# This file changes only if the compiler or the flags change, or if the folder is spelled in another way (the dependency files name it).
# Then everything is built again.
$(OBJ)/flags: FORCE
	@mkdir -p $(@D)
	@{ $(CC) --version | head -n 1; echo '$(OBJ): $(CC) $(KERNEL_CFLAGS) $(KERNEL_LDFLAGS)'; } > $@.new
	@$(call keep_flags,$(OBJ),$(sort $(if $(PAYLOAD),$(OBJECTS),$(LINKED))))

$(if $(PAYLOAD),$(eval $(PROGRAM_OBJECTS): KERNEL_CFLAGS := $(PAYLOAD_CFLAGS)))

$(BUILD)/lib/objects: private OBJECTS := $(LIB_OBJECTS)
$(OUT)/objects $(BUILD)/lib/objects: FORCE
	@mkdir -p $(@D)
	@echo '$(OBJECTS)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(OBJ)/%.c.o: %.c $(OBJ)/flags
	@mkdir -p $(@D)
	@$(call compiling,CC,$(OBJ),$<)
	@$(CC) $(KERNEL_CFLAGS) -MMD -MP -c $< -o $@

$(PAUSED:%=$(OUT)/%.o): $(OUT)/%.o: % $(OBJ)/flags
	@mkdir -p $(@D)
	@$(call compiling,CC,$(OBJ),$< with pauses)
	@$(CC) $(KERNEL_CFLAGS) -include tests/pause/points.h -MMD -MP -c $< -o $@

$(OBJ)/%.cpp.o: %.cpp $(OBJ)/flags
	@mkdir -p $(@D)
	@$(call compiling,CXX,$(OBJ),$<)
	@$(CXX) $(PAYLOAD_CXXFLAGS) -MMD -MP -c $< -o $@

$(OBJ)/%.cc.o: %.cc $(OBJ)/flags
	@mkdir -p $(@D)
	@$(call compiling,CXX,$(OBJ),$<)
	@$(CXX) $(PAYLOAD_CXXFLAGS) -MMD -MP -c $< -o $@

$(OBJ)/%.S.o: %.S $(OBJ)/flags
	@mkdir -p $(@D)
	@$(call compiling,AS,$(OBJ),$<)
	@$(CC) $(KERNEL_ASFLAGS) -MMD -MP -c $< -o $@

$(VDSO): kernel/program/vdso/vdso.c $(wildcard kernel/program/vdso/*.h kernel/program/vdso/*.lds) kernel/lib/types.h Makefile
	@mkdir -p $(@D)
	@$(call making,VDSO,$@)
	@$(CC) $(VDSO_CFLAGS) -c $< -o $@.o
	@$(LD) $(VDSO_LDFLAGS) $@.o -o $@

$(OBJ)/kernel/program/vdso.c.o: $(VDSO)

$(OBJ)/arch/x86_64/consoles/font.S.o: $(wildcard arch/x86_64/consoles/font/*.psfu)

# What DEFINED() of the script is to see comes before it.
link = $(LD) $(if $(PAYLOAD)$(filter 1,$(SAN)),,--defsym=__image_end_most=0x800000) $(KERNEL_LDFLAGS) $(LINKED) $(1) -o $(2)
assemble_symbols = awk -f boot/symbols.awk $(1) > $(2).S && $(CC) -c $(2).S -o $(2).o
text_symbols = awk '$$2 ~ /^[tTwW]$$/' $(1)

$(KERNEL): $(LINKED) $(OUT)/objects linker.ld boot/symbols.awk
	@mkdir -p $(OUT)/link
	@$(call making,LD,$@)
	@$(call assemble_symbols,/dev/null,$(OUT)/link/symbols0)
	@$(call link,$(OUT)/link/symbols0.o,$(OUT)/link/pass1.elf)
	@$(NM) -n $(OUT)/link/pass1.elf > $(OUT)/link/pass1.nm
	@$(call assemble_symbols,$(OUT)/link/pass1.nm,$(OUT)/link/symbols)
	@$(call link,$(OUT)/link/symbols.o,$(OUT)/link/pass2.elf)
	@$(NM) -n $(OUT)/link/pass2.elf > $(OUT)/link/pass2.nm
	@$(call text_symbols,$(OUT)/link/pass1.nm) > $(OUT)/link/pass1.text
	@$(call text_symbols,$(OUT)/link/pass2.nm) > $(OUT)/link/pass2.text
	@cmp $(OUT)/link/pass1.text $(OUT)/link/pass2.text || { echo 'The symbol table moved the functions it names.' >&2; exit 1; }
	@mv $(OUT)/link/pass2.elf $@

# ---- the library -------------------------------------------------------------------------------------------------

# Library, linker script, ashlar.h with the headers that it includes, and a description for pkg-config, in a folder that can be moved, for
# programs that are built elsewhere.
# A program linked in this way has no table of symbols: its backtraces show addresses, and addr2line names them.
SDK := $(BUILD)/sdk
SDK_HEADERS := ashlar.h $(wildcard kernel/*.h kernel/*/*.h mm/*.h arch/x86_64/include/arch/*.h)

.PHONY: lib
lib: $(BUILD)/libashlar.a $(SDK)/lib/pkgconfig/ashlar.pc ## build the kernel as a library, $(BUILD)/libashlar.a, and all of $(BUILD)/sdk

# The kernel as one object. Only the names of the interface (ashlar.symbols) are global in it, so a program may use all others for itself.
# Names that the compiler knows are weak. With PROGRAM=no nothing defines payload_of_room(), and a program's own of this name is not called.
WEAK := __stack_chk_guard __stack_chk_fail __cxa_pure_virtual
INSTRUMENTED := $(if $(filter 1,$(SAN)),__ubsan_* __asan_*)
$(BUILD)/lib/ashlar.o: $(LIB_OBJECTS) $(BUILD)/lib/objects ashlar.symbols $(OBJ)/flags
	@mkdir -p $(@D)
	@$(call making,LD,$@)
	@$(LD) -m elf_x86_64 -r $(LIB_OBJECTS) -o $@.all
	@$(OBJCOPY) --wildcard --keep-global-symbols=ashlar.symbols $(patsubst %,--keep-global-symbol='%',multiboot2_entry $(WEAK) $(INSTRUMENTED)) \
		$(WEAK:%=--weaken-symbol=%) --redefine-sym payload_of_room=__payload_of_room $@.all $@
	@rm $@.all

# The functions that the compiler calls in a program, all weak: the program's own take their place. The kernel has its own copies.
$(BUILD)/lib/runtime.o: $(OBJ)/kernel/lib/string.c.o $(OBJ)/arch/x86_64/cpu/builtins.c.o $(OBJ)/flags
	@mkdir -p $(@D)
	@$(LD) -m elf_x86_64 -r $(filter %.c.o,$^) -o $@.all
	@$(OBJCOPY) --weaken $@.all $@
	@rm $@.all

$(BUILD)/libashlar.a: $(LIBRARY)
	@$(call making,AR,$@)
	@rm -f $@
	@$(AR) rcsD $@ $(LIBRARY)

SDK_CFLAGS := -ffreestanding -fno-pic -fno-pie -mcmodel=kernel -mno-red-zone -fno-omit-frame-pointer \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none
SDK_LIBS := -nostdlib -static -no-pie -Wl,--build-id=none,-z,noexecstack,-z,max-page-size=0x1000 \
	-Wl,-T,$${libdir}/ashlar.ld -L$${libdir} -Wl,--whole-archive -lashlar -Wl,--no-whole-archive

$(SDK)/lib/pkgconfig/ashlar.pc: $(BUILD)/libashlar.a linker.ld $(SDK_HEADERS) Makefile
	@echo '  SDK     $(SDK)'
	@rm -rf $(SDK)
	@mkdir -p $(@D)
	@cp $(BUILD)/libashlar.a $(SDK)/lib/
	@cp linker.ld $(SDK)/lib/ashlar.ld
	@for header in $$($(CC) -ffreestanding $(INCLUDES) -MM -MT '' ashlar.h | tr -d ':\\'); do \
		to=$(SDK)/include/ashlar/$${header#arch/x86_64/include/}; mkdir -p $${to%/*} && cp $$header $$to || exit 1; done
	@{ echo 'prefix=$${pcfiledir}/../..'; echo 'libdir=$${prefix}/lib'; echo 'cxxflags=$(CXX_FLAGS)'; echo; echo 'Name: ashlar'; \
		echo 'Description: freestanding x86-64 kernel around a memory subsystem'; echo 'Version: $(VERSION)'; \
		echo 'Cflags: -isystem $${prefix}/include/ashlar $(SDK_CFLAGS)'; echo 'Libs: $(SDK_LIBS)'; } > $@

-include $(OBJECTS:.o=.d) $(PAUSED:%=$(OUT)/%.d)

# Targets host-asan, host-tsan and host-fast: the same sources as an ordinary process.
-include tests/host/host.mk

# Target models: the protocol models.
-include tests/model/model.mk

.PHONY: deps
deps: ## install everything that any target needs (CI=true: without asking); after this no network is needed
	@tests/setup/beside.sh qemu10 $(TOOLS) || echo 'Targets that need QEMU 10 will be skipped.'

# ---- run ---------------------------------------------------------------------------------------------------------

WITH_PROGRAM = --program $(call quote,$(PROGRAM)) --files $(call quote,$(FILES))
WITH_FILES_OUT = $(if $(FILES_OUT),--files-out $(call quote,$(FILES_OUT)))
LAUNCH = /usr/bin/env python3 tests/qemu/launch.py --build $(OUT) --firmware $(FIRMWARE) --cpus $(CPUS) --mem $(MEM) \
	--nodes $(NODES) --accel $(ACCEL) --cpu '$(CPU)' --timeout $(TIMEOUT) --cmdline '$(CMDLINE)' $(WITH_PROGRAM) $(WITH_FILES_OUT)

.PHONY: iso usb run monitor debug
image = $(OUT)/ashlar.$(if $(filter efi,$(FIRMWARE)),img,iso)
iso: $(image) $(if $(filter efi,$(FIRMWARE)),$(OUT)/BOOTX64.EFI) ## build the hybrid image for BIOS and UEFI, CD and USB stick, $(BUILD)/ashlar.iso; FIRMWARE=efi: $(BUILD)/BOOTX64.EFI, and ashlar.img, a disk with it
$(OUT)/ashlar.iso: $(KERNEL) $(wildcard boot/grub* boot/mkiso.sh) $(OUT)/iso.cmdline $(if $(PROGRAM),FORCE)
	@$(call making,ISO,$@)
	@tests/qemu/program.py --out $(OUT)/program.cpio $(WITH_PROGRAM)
	@boot/mkiso.sh $(KERNEL) '$(CMDLINE)' $@ 5 $(if $(PROGRAM),$(OUT)/program.cpio)

usb: $(if $(DEV),$(image)) ## write that image to a USB stick, DEV=/dev/sdX, after asking; refuse a disk that is no stick
	@boot/mkusb.sh '$<' '$(DEV)'

$(OUT)/ashlar.img: | $(OUT)/BOOTX64.EFI # both write program.cpio
$(OUT)/BOOTX64.EFI $(OUT)/ashlar.img: $(KERNEL) $(wildcard boot/efi/* boot/mkefi.sh) $(OUT)/iso.cmdline $(if $(PROGRAM),FORCE)
	@$(call making,EFI,$@)
	@tests/qemu/program.py --out $(OUT)/program.cpio $(WITH_PROGRAM)
	@boot/mkefi.sh $(KERNEL) '$(CMDLINE)' $@ $(if $(PROGRAM),$(OUT)/program.cpio)

$(OUT)/iso.cmdline: FORCE
	@mkdir -p $(@D)
	@echo '$(CMDLINE)' $(call quote,$(PROGRAM)) | cmp -s - $@ || echo '$(CMDLINE)' $(call quote,$(PROGRAM)) > $@

run: $(KERNEL) ## boot the kernel in QEMU, resize a pool in four modes, print the verdict
	@$(LAUNCH) --console $(OUT)/run.console

monitor: override CMDLINE := monitor $(CMDLINE)
monitor: $(KERNEL) ## boot the kernel in QEMU and type commands: help lists them, poweroff ends the session
	@$(LAUNCH) --console $(OUT)/run.console

debug: $(KERNEL) ## boot the kernel halted, with gdb attached, symbols loaded and a breakpoint at kernel_main
	@$(LAUNCH) --debug

# ---- test --------------------------------------------------------------------------------------------------------

PYTEST = /usr/bin/python3 -m pytest -p no:cacheprovider -o console_output_style=classic --durations 10 tests/qemu \
	--build $(BUILD) --junitxml $(BUILD)/test.xml --select '$(T)' $(if $(filter 1,$(SAN)),--san)

# Each test/WHAT is what make test WHAT= runs, and each bench/WHAT the same of make bench.
.PHONY: check test lint $(addprefix test/,all again matrix machines huge bare msan replay programs soak soak-alloc mutants mutants-random \
	models fuzz fuzz-keep fuzz-calls coverage explore fences prove long proof)
test: test/$(or $(WHAT),all) ## run all tests: 11 machines, the hosted build under sanitizers, the models, the build itself; or WHAT
test/all: $(KERNEL) $(if $(filter 1,$(SAN)),,host-asan host-tsan host-native host-explore host-replay)
	@$(if $(filter 1,$(SAN)),,pause_seed=1 $(MAKE) --no-print-directory WHAT= kernel)
	@$(PYTEST)

test/again: ## run make test on a busy host until N runs in a row were green [20]; a row for each; hours
	@tests/again.sh tests/report/measurements/again.txt $(BUILD)/again.log $(or $(N),20)

test/matrix: $(KERNEL) ## run the cases on all pairs of firmware, CPUs and RAM
	@$(PYTEST) --matrix

test/machines: $(KERNEL) ## run the cases on the boards, CPU models, screens and shapes of boot/metal.md, or those of T
	@$(PYTEST) --machines --machine '$(T)'

test/huge: $(KERNEL) ## run the cases with 1024 CPUs and with 4 TiB of RAM (needs QEMU 10)
	@$(PYTEST) --huge

test/bare: ## run make test inside a fresh Debian 12 and 13, or the release T (needs root and network; an hour)
	@tests/bare/run.sh $(T)

test/msan: host-msan ## run every case, or those of T, hosted under the memory sanitizer: minutes
	@$(BUILD)/host/msan/ashlar-host -c 4 -m 3G '$(or $(T),*)'

test/replay: host-asan ## boot the hosted kernel as each machine that a text in FILES describes (tests/host/replay.h)
	@passed=0 failed=0; for text in '$(FILES)'/*; do [ -f "$$text" ] || continue; \
		if timeout 900 $(BUILD)/host/asan/ashlar-host -x -c 4 -r "$$text" -k 'test=mm.machine.* end.hang=600' >$(BUILD)/replay.console 2>&1; \
		then echo "ok $${text##*/}"; passed=$$((passed + 1)); else failed=$$((failed + 1)); \
		why=$$(grep -aE 'machine_map_test|ashlar-host:|ERROR' $(BUILD)/replay.console | tail -n 1); \
		echo "not ok $${text##*/}: $${why:-$$(tail -n 1 $(BUILD)/replay.console)}"; fi; done; \
	echo "$$passed machines passed, $$failed failed"; [ $$failed = 0 ] && [ $$passed != 0 ]

test/programs: $(KERNEL) ## fetch programs that people already have, build them and run them, or those of T, on this machine and on Ashlar (needs network; 20 minutes)
	@/usr/bin/python3 tests/programs/run.py --build $(OUT) --tools $(TOOLS) --select '$(T)'

test/soak: host-native $(KERNEL) ## run random operations on pages, ranges, mappings and pools for N hours [0.1], with faults and audits: threads, 64 CPUs and 2 CPUs at the same time
	@tests/soak.sh $(BUILD) $(or $(N),0.1) $(ACCEL) $(SEED)

test/soak-alloc: host-native ## compare random allocator work with a model, natively: N operations [100000000]
	@$(BUILD)/host/native/ashlar-host -c 1 -m 1G -t 86400 -k 'test.soak=$(or $(N),100000000) test.seed=$(SEED)' 'mm.random.*'

test/mutants: ## break promises on purpose, or those of T, and require the tests to notice
	@tests/mutants/mutants.py --build $(BUILD)/mutants $(if $(T),--select '$(T)')

# Results are kept, so a run that was interrupted goes on.
test/mutants-random: ## break N lines [400], as a tool of others chooses (needs network once), count how many are noticed: tests/report/measurements/mutants-random.txt; hours; T=1/2: every second
	@CC='$(CC)' KERNEL_CFLAGS='$(KERNEL_CFLAGS)' HOST_CFLAGS='$(HOST_CFLAGS) $(HOST_CFLAGS_asan)' \
		tests/mutants/drawn.py --build $(BUILD)/mutants-random --tools $(TOOLS) \
		--number $(or $(N),400) --seed $(SEED) --shard $(or $(T),1/1) --rows tests/report/measurements/mutants-random \
		--score tests/report/measurements/mutants-random.txt

# Both keep what they have searched, so a run that was interrupted goes on.
test/explore: host-explore ## search N schedules [1000] of each short concurrent case, or of those of T, drawn from SEED: tests/report/measurements/schedules.txt; minutes
	@tests/host/explore/search.py --build $(BUILD) --schedules $(or $(N),1000) --cost 2.2 --select '$(or $(T),*)' --seed $(SEED) \
		$(if $(T),,--table tests/report/measurements/schedules.txt)

test/fences: host-explore ## weaken each fence and each locked instruction, and search for a case, or one of T, that notices: tests/report/measurements/fences.txt; an hour
	@tests/host/explore/fences.py --build $(BUILD) --cases '$(or $(T),*)' $(if $(T),,--table tests/report/measurements/fences.txt)

test/prove: ## prove parsers, states of blocks and work on bits for all inputs up to a bound, or those of T (needs network once, for CBMC): tests/report/measurements/prove.txt; minutes
	@tests/prove/run.py --build $(BUILD)/prove --tools $(TOOLS) --select '$(or $(T),*)' $(if $(T),,--table tests/report/measurements/prove.txt)

test/long: $(KERNEL) host-native host-explore ## run the tests that take long and seldom tell anything new; an hour
	@$(PYTEST) --proof

# Run this before the pages repeat their claims of proof. Each row can also be run by itself.
test/proof: ## run all of this that no longer holds, or the rows T of it: tests/report/measurements/proof.txt; hours; goes on if it was interrupted
	@tests/proof.py --build $(BUILD)/proof --select '$(or $(T),*)'

# Run this before a commit: it contains the checks that fail most often.
check: $(KERNEL) host-asan ## check before a commit, in three minutes: the order of rooms, style, every case hosted under asan and in one guest, docs, promises
	@tests/lint/rooms.py --build $(BUILD)
	@CC='$(CC)' KERNEL_CFLAGS='$(KERNEL_CFLAGS)' HOST_CFLAGS='$(HOST_CFLAGS) -O1 -DASHLAR_DEBUG' tests/lint/run.py style
	@/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/qemu --build $(BUILD) --select '' \
		-k 'host-asan-4cpu or pvh-3cpu or test_context or test_promises or test_steps or test_run or (test_docs and not writes)'

lint: $(KERNEL) ## check the order of rooms; compile with clang; gcc -fanalyzer, clang-tidy, cppcheck, sparse and the depth of the stack over all but the tests; minutes
	@tests/lint/rooms.py --build $(BUILD)
	@CC='$(CC)' KERNEL_CFLAGS='$(KERNEL_CFLAGS)' HOST_CFLAGS='$(HOST_CFLAGS) -O1 -DASHLAR_DEBUG' tests/lint/run.py
	@$(MAKE) --no-print-directory kernel CC=clang BUILD=$(BUILD)/clang >/dev/null

# ---- measure ----------------------------------------------------------------------------------------------------

# 8 GiB, or less if the host has less to spare.
native_mem = $(shell awk '/^MemAvailable:/ { g = int($$2 / 2097152); print (g > 8 ? 8 : g < 1 ? 1 : g) "G" }' /proc/meminfo)
native_cpus = $(if $(filter command environment,$(firstword $(origin CPUS))),$(CPUS),2)

.PHONY: bench $(addprefix bench/,all compare against linux programs balloon native icount)
bench: bench/$(or $(WHAT),all) ## run the benchmarks, or those of T, in QEMU and natively, and write $(BUILD)/bench/report.html; or WHAT
bench/all: $(KERNEL) host-native host-fast
	@/usr/bin/env python3 tests/report/legs.py --build $(BUILD) --only '$(T)'

bench/compare: ## compare OLD and NEW of FILES=OLD,NEW, each a console, a folder of consoles or a records.jsonl; fail if a time rose
	@[ $(words $(subst $(comma), ,$(FILES))) = 2 ] || { echo 'make bench WHAT=compare needs two to compare: FILES=OLD,NEW' >&2; exit 2; }
	@tests/bench/compare $(subst $(comma), ,$(FILES))

bench/against: $(KERNEL) host-native host-fast ## build the revision FILES (FILES=HEAD~5) and run the benchmarks, or those of T, there and here, in turn, N times [6]; fail if a time rose
	@/usr/bin/env python3 tests/report/against.py --build $(BUILD) --only '$(T)' --revision '$(FILES)' --turns '$(N)'

bench/linux: $(KERNEL) ## unpack the distribution's kernels under build/tools, measure them in the same QEMU and add them, or the tables of T, to that report
	@/usr/bin/env python3 tests/report/bench_linux.py --build $(BUILD) --tools $(TOOLS) --only '$(T)'

bench/programs: $(KERNEL) ## run the programs of tests/programs/bench, those of T, or PROGRAM, on those kernels and on Ashlar, in turn, and add them to that report
	@/usr/bin/env python3 tests/report/bench_programs.py --build $(BUILD) --tools $(TOOLS) --only '$(T)' $(WITH_PROGRAM) \
		--cpus '$(if $(filter command,$(firstword $(origin CPUS))),$(CPUS))'

bench/balloon: $(KERNEL) ## measure how freed memory goes back to the host, of Ashlar and of the newest of those kernels; 15 minutes
	@/usr/bin/env python3 tests/report/balloon.py --build $(BUILD) --tools $(TOOLS)

bench/native: host-native host-fast ## measure the tables of the memmap, HVO, clearing and per-CPU list series at native speed with CPUS [2]; fail if the default clears over 5% slower than the best
	@$(BUILD)/host/native/ashlar-host -x -c $(native_cpus) -m $(native_mem) -k 'bench=memmap'
	@$(BUILD)/host/native/ashlar-host -x -c $(native_cpus) -m $(native_mem) -k 'bench="hvo; clear gate=5; fault"'
	@$(BUILD)/host/fast/ashlar-host -x -c $(native_cpus) -m 2G -k bench=pcp

bench/icount: $(KERNEL) ## count instructions per struct page, per huge fault and per small page (memmap, clearing and per-CPU list series) on one CPU whose ns are instructions
	@/usr/bin/env python3 tests/qemu/launch.py --build $(BUILD) --firmware pvh --cpus 1 --mem 2G --accel icount \
		--cmdline bench=memmap | tee $(BUILD)/icount.console
	@grep -m 1 '^BENCH memmap mode=serial' $(BUILD)/icount.console | tr ' ' '\n' | awk -F = '$$1 == "pages" { pages = $$2 } \
		$$1 == "ns" && pages { printf "%.2f instructions per struct page\n", $$2 / pages; found = 1; exit } \
		END { exit !found }'
	@/usr/bin/env python3 tests/qemu/launch.py --build $(BUILD) --firmware pvh --cpus 1 --mem 2G --accel icount \
		--cmdline 'bench="fault bytes=64M runs=1"' | tee $(BUILD)/icount.console
	@sed -n 's/^BENCH fault mode=multi insn=default size=2M .* besides_ns=\([0-9]*\) .*/\1 instructions per 2 MiB fault besides the clear/p' \
		$(BUILD)/icount.console | grep .
	@/usr/bin/env python3 tests/qemu/launch.py --build $(BUILD) --firmware pvh --cpus 1 --mem 2G --accel icount \
		--cmdline bench=pcp | tee $(BUILD)/icount.console
	@sed -n 's/^BENCH pcp type_cache=\([a-z]*\) .* run=1 ns_alloc=\([0-9.]*\) ns_free=\([0-9.]*\) .*/\1: \2 instructions to allocate a page, \3 to free it/p' \
		$(BUILD)/icount.console | grep .

# The figures are counts, so a busy host measures as well as a quiet one.
.PHONY: counts
counts: $(KERNEL) host-native ## count what each operation costs (instructions, rounds, messages, misses, locked instructions) and compare with tests/bench/counts, or replace it: WHAT="why they change"
	@/usr/bin/env python3 tests/report/counts.py --build $(BUILD) $(if $(WHAT),--accept --reason $(call quote,$(WHAT)))

# ---- fuzz -------------------------------------------------------------------------------------------------------

hosted_fuzzed := $(BUILD)/host/$(if $(filter 1,$(DEBUG)),asan,native)/ashlar-host
test/fuzz-calls: $(hosted_fuzzed) ## make N random calls [10000000] as threads of a program and compare with a model of its areas, hosted; DEBUG=1: under asan
	@$< -x -c 4 -m 1G -k 'end.hang=600 test=program.fuzz.* test.fuzz_calls=$(or $(N),10000000) test.seed=$(SEED)' >$(BUILD)/fuzz-calls.console 2>&1; \
		status=$$?; grep -aE '^ *# fuzz:' $(BUILD)/fuzz-calls.console; \
		[ $$status -eq 0 ] || { tail -n 60 $(BUILD)/fuzz-calls.console; exit 1; }

FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
$(BUILD)/fuzz/%: tests/fuzz/%.c
	@mkdir -p $(@D)
	@echo '  FUZZER  $<'
	@clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(INCLUDES) -MMD -MP $< -o $@

# A run starts from the committed inputs and from those that earlier runs found, and keeps new ones under $(BUILD)/fuzz. A crash is named
# and ends the goal.
fuzz_seconds = $(or $(N),600)
test/fuzz: $(FUZZERS) ## run every fuzzer in tests/fuzz for N seconds each [600]
	@for fuzzer in $(FUZZERS); do \
		mkdir -p $$fuzzer.corpus && echo "  FUZZ    $$fuzzer, $(fuzz_seconds) s" && \
		$$fuzzer -max_total_time=$(fuzz_seconds) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
			-artifact_prefix=$$fuzzer. $$fuzzer.corpus tests/fuzz/corpus/$$(basename $$fuzzer) >$$fuzzer.log 2>&1 || \
			{ tail -n 40 $$fuzzer.log; exit 1; }; \
		sed -n 's/^stat::number_of_executed_units:/         inputs tried:/p' $$fuzzer.log; \
	done; echo '$(words $(FUZZERS)) fuzzers passed'

test/fuzz-keep: $(FUZZERS) ## copy to tests/fuzz/corpus the fewest of the inputs found that reach the same code as all of them
	@for fuzzer in $(FUZZERS); do \
		mkdir -p $$fuzzer.corpus && echo "  KEEP    $$fuzzer" && \
		$$fuzzer -set_cover_merge=1 -use_counters=0 -max_len=1500 tests/fuzz/corpus/$$(basename $$fuzzer) $$fuzzer.corpus \
			>$$fuzzer.log 2>&1 || { tail -n 40 $$fuzzer.log; exit 1; }; \
	done

-include $(FUZZERS:%=%.d)

# ---- the rest ----------------------------------------------------------------------------------------------------

.PHONY: clean help help-options FORCE
# The compilation database for editors and clang tools.
compile_commands.json: FORCE
	@{ echo '['; sep=''; for f in $(filter %.c,$(SOURCES)); do \
		printf '%s{ "directory": "%s", "file": "%s", "command": "%s" }' "$$sep" '$(CURDIR)' "$$f" \
			"$(CC) $(KERNEL_CFLAGS) -c $$f"; sep=",\n"; \
	done | sed 's/,\\n/,\n/g'; echo; echo ']'; } > $@

clean: ## remove everything that was built, except build/tools
	@[ ! -d $(BUILD) ] || find $(BUILD) -mindepth 1 -maxdepth 1 ! -path '$(TOOLS)' -exec rm -rf {} +
	@rm -f compile_commands.json

help: ## print this list
	@sed -n -e 's/^#: \([A-Z][a-z]*\)$$/\n\1:/p' -e 's/^#: \([A-Z_]\{1,\} .*\)/  \1/p' \
		-e 's/^\([a-z./-]\{1,\}\):.*## \(.*\)/\1\t\2/p' Makefile tests/host/host.mk tests/model/model.mk | \
		sed 's/$$(BUILD)/$(subst /,\/,$(BUILD))/' | \
		awk -F '\t' 'split($$1, part, "/") == 2 && NF == 2 { more[part[1]] = more[part[1]] sprintf("  %-15s %s\n", part[2], $$2); next } \
			NF == 2 { printf "  %-15s %s\n", $$1, $$2; next } { print } \
			END { printf "\nmake test WHAT=\n%s\nmake bench WHAT=\n%s", more["test"], more["bench"] }'

help-options: $(KERNEL) ## print all words of the kernel's command line, each with its default and its values
	@/usr/bin/env python3 tests/qemu/launch.py --build $(BUILD) --firmware pvh --cpus 1 --mem 128M --cmdline 'run="help options"' | grep '^  [a-z]'

FORCE:
