#!/usr/bin/env bash
# All kernels under AddressSanitizer and UndefinedBehaviorSanitizer: the tests that use one, then coverage-guided fuzzing.
#
#   tests/native/sanitize.sh PYTHON [FUZZER...]      PYTHON has the project's requirements; without names all fuzzers run
#
# FUZZ_SECONDS (60): seconds per fuzzer; 0 leaves fuzzing out. SANITIZE_TESTS=0 leaves the tests out. All happens in a copy
# of the tree in build/sanitize, so that the kernels in use stay as they are; the fuzzers' findings stay there, too.
# Freed memory is held back for 16 MB alone, since a test looks at how large the process is.
# Memory that is never freed is not looked for: the interpreter itself keeps much of it until it ends.
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=$1
shift
FUZZERS=("$@")
SECONDS_EACH=${FUZZ_SECONDS:-60}
COPY=$PWD/build/sanitize
CHECKS=(-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all)
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc

missing() {
    echo "$1 is missing. On Debian or Ubuntu: apt-get install gcc clang libclang-rt-14-dev llvm" >&2
    exit 1
}

[ -x "$PYTHON" ] || command -v "$PYTHON" > /dev/null || missing "$PYTHON"
PYTHON=$(realpath -s "$(command -v "$PYTHON")")
if [ "$SECONDS_EACH" != 0 ]; then command -v clang > /dev/null || missing clang; fi
rm -rf "$COPY"
mkdir -p "$COPY"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -P --parents --target-directory "$COPY" 2> /dev/null || true
cd "$COPY"
export PYTHONPATH=$COPY

if [ "${SANITIZE_TESTS:-1}" != 0 ]; then
    command -v gcc > /dev/null || missing gcc
    CC=gcc CFLAGS="-O1 ${CHECKS[*]}" LDFLAGS="-fsanitize=address,undefined" "$PYTHON" setup.py -q build_ext --inplace
    "$PYTHON" setup.py -q egg_info
    mapfile -t TESTS < <(grep -rlE '^(from|import) .*\bnative\b' tests/{loader,native,transforms} --include='test_*.py' | sort)
    echo "sanitize: ${#TESTS[@]} test files"
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
        "$PYTHON" -m pytest -p no:cacheprovider -p no:xdist -o faulthandler_timeout=0 --timeout=1800 --hypothesis-profile=ci "${TESTS[@]}"
fi

if [ "$SECONDS_EACH" = 0 ]; then exit 0; fi
read -r INCLUDES LIBRARIES NAME < <("$PYTHON" -c 'import sysconfig as s; v = s.get_config_var
print(v("INCLUDEPY"), v("LIBDIR"), "python" + v("LDVERSION"))')
mkdir -p fuzzers/seeds
cp README.md docs/*.md fuzzers/seeds
# The words that kernels look for: names of elements, phrases.
cat transforms/native/include/*.h transforms/native/include/*/*.h | grep -oE '"[a-z][a-z0-9 -]+"' | sort -u > fuzzers/words
if [ ${#FUZZERS[@]} = 0 ]; then
    for source in tests/native/fuzz/fuzz_*.c; do FUZZERS+=("$(basename "$source" .c | cut -c 6-)"); done
fi
for kernel in "${FUZZERS[@]}"; do
    clang -O1 "${CHECKS[@]}" -fsanitize=fuzzer -Iloader/native/include -Itransforms/native/include \
        -Itransforms/native/include/htmlblocks -I"$INCLUDES" \
        "tests/native/fuzz/fuzz_$kernel.c" -o "fuzzers/$kernel" -L"$LIBRARIES" -Wl,-rpath,"$LIBRARIES" -l"$NAME" -lm ||
        missing "what clang needs (its run-time library, or Python's headers and library)"
    mkdir -p "fuzzers/$kernel-inputs"
    echo "sanitize: fuzzing $kernel for $SECONDS_EACH s"
    "fuzzers/$kernel" -max_total_time="$SECONDS_EACH" -max_len=4096 -timeout=20 -rss_limit_mb=4096 -detect_leaks=0 \
        -dict=fuzzers/words -artifact_prefix="fuzzers/$kernel-" -print_final_stats=1 -verbosity=0 \
        "fuzzers/$kernel-inputs" fuzzers/seeds 2>&1 | grep -vE '^(INFO|Dictionary|"|###### )' ||
        { echo "sanitize: $kernel failed; the input is in $COPY/fuzzers" >&2; exit 1; }
done
echo "sanitize: clean"
