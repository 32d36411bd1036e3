package abi

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// exported lists the functions and variables that a library offers.
func exported(t *testing.T, library string) (names []string) {
	t.Helper()
	for line := range strings.Lines(output(t, "nm", "-D", "--defined-only", library)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[1] != "A" { // A: the name of a version
			name, _, _ := strings.Cut(fields[2], "@")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func header(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(build(t), "include/redlock.h"))
	require.NoError(t, err)
	return string(text)
}

func TestExportsAreTheHeadersFunctions(t *testing.T) {
	code := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(header(t), "")
	var declared []string
	for _, match := range regexp.MustCompile(`(?m)^[a-zA-Z].*?\b(redlock_\w+)\(`).FindAllStringSubmatch(code, -1) {
		declared = append(declared, match[1])
	}
	slices.Sort(declared)
	require.Len(t, declared, 20)
	require.Equal(t, declared, exported(t, build(t)+"/lib/libredlock.so"))
	require.Equal(t, []string{"redlock_core_start"}, exported(t, build(t)+"/lib/libredlock-core.so"))
}

func TestNameAndNeeds(t *testing.T) {
	dynamic := output(t, "readelf", "-d", build(t)+"/lib/libredlock.so")
	require.Contains(t, dynamic, "Library soname: [libredlock.so.0]")
	for _, match := range regexp.MustCompile(`Shared library: \[(.*)\]`).FindAllStringSubmatch(dynamic, -1) {
		require.Contains(t, []string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}, match[1])
	}
	require.FileExists(t, build(t)+"/lib/libredlock.so.0")
}

func TestStatusesAreTheCores(t *testing.T) {
	found := regexp.MustCompile(`(?m)^    REDLOCK_(\w+) = (\d+),? +/\*`).FindAllStringSubmatch(header(t), -1)
	names := map[string]core.Status{"OK": core.OK}
	for _, match := range found {
		for status := core.OK; status <= core.Internal; status++ {
			if status.String() == match[1] {
				require.Equal(t, match[2], regexp.MustCompile(`\d+`).FindString(match[0]))
				names[match[1]] = status
			}
		}
	}
	require.Len(t, names, int(core.Internal)+1)
}

func TestKindsAreTheCores(t *testing.T) {
	enum := regexp.MustCompile(`(?s)/\* Kinds of locks\..*?\};`).FindString(header(t))
	names := map[string]string{}
	for _, match := range regexp.MustCompile(`REDLOCK_(\w+) = (\d+)`).FindAllStringSubmatch(enum, -1) {
		names[match[1]] = match[2]
	}
	require.Equal(t, map[string]string{
		"MUTEX": strconv.Itoa(int(core.Mutex)), "SEMAPHORE": strconv.Itoa(int(core.Semaphore)),
	}, names)
}

func TestHeaderIsPlainCAndCPlusPlus(t *testing.T) {
	source := filepath.Join(t.TempDir(), "alone.c")
	use := `#include <redlock.h>
int main(void)
{
    redlock_error error = REDLOCK_ERROR_INIT;
    redlock_options options = REDLOCK_OPTIONS_INIT;
    redlock_request request = REDLOCK_REQUEST_INIT;
    redlock_inspection inspection = REDLOCK_INSPECTION_INIT;
    (void)error; (void)options; (void)request; (void)inspection;
    return 0;
}
`
	require.NoError(t, os.WriteFile(source, []byte(use), 0o644))
	for _, compiler := range [][]string{
		{"cc", "-std=c99"}, {"cc", "-std=c17"}, {"c++", "-x", "c++", "-std=c++11"}, {"c++", "-x", "c++", "-std=c++20"},
	} {
		args := append(slices.Clone(compiler[1:]), strict...)
		output(t, compiler[0], append(args, "-fsyntax-only", "-I"+build(t)+"/include", source)...)
	}
}

// A core that is not there, or not the one of this build, is a status with the path in its message.
func TestTheCoreIsMissingOrAnother(t *testing.T) {
	another := filepath.Join(t.TempDir(), "another.c")
	require.NoError(t, os.WriteFile(another, []byte(`#include "core.h"
static const struct redlock_core core = {.version = "9.9.9"};
const struct redlock_core *redlock_core_start(uint64_t first, redlock_watch_fd *watch)
{
    return first != 0 && watch ? &core : 0;
}
`), 0o644))
	for name, core := range map[string]string{
		"missing":       "true",
		"no library":    "echo text >$lib/libredlock-core.so",
		"other library": "cp $lib/libredlock.so.0 $lib/libredlock-core.so",
		"other version": "cc -shared -fPIC -I" + capi + " -o $lib/libredlock-core.so " + another,
	} {
		t.Run(name, func(t *testing.T) {
			dir := variant(t, strings.ReplaceAll(name, " ", "-"), "", core)
			out := output(t, compile(t, dir, "errors"), "redis://127.0.0.1:1", "redis://127.0.0.1:1")
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, 4, out)
			for i := range 2 { // the second open says the same as the first
				require.Equal(t, "UNSUPPORTED", lines[2*i])
				require.Contains(t, lines[2*i+1], "/lib/libredlock-core.so ")
			}
		})
	}
}

func TestExamples(t *testing.T) {
	tool(t, "pkg-config")
	server := testredis.Start(t)
	moved := filepath.Join(t.TempDir(), "moved") // a build can be moved
	output(t, "cp", "-R", build(t), moved)
	t.Setenv("PKG_CONFIG_PATH", filepath.Join(moved, "lib/pkgconfig"))
	flags := strings.Fields(output(t, "pkg-config", "--cflags", "--libs", "redlock"))
	for name, said := range map[string]string{"blocking": "released\n", "poll": strings.Repeat("released\n", 5)} {
		program := filepath.Join(t.TempDir(), name)
		args := append([]string{"-std=gnu99", "-o", program, capi + "/examples/" + name + ".c"}, strict...)
		output(t, "cc", append(args, flags...)...)
		t.Setenv("LD_LIBRARY_PATH", filepath.Join(moved, "lib"))
		require.Contains(t, output(t, program, server.URL), said)
	}
	for _, key := range server.Keys() {
		require.Contains(t, key, ":fence:", "what was locked is free again")
	}
}
