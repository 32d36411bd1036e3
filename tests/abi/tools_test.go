package abi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// variant is the library with its C part compiled with other flags; core is the command that puts a core into $lib.
func variant(t *testing.T, name, flags, core string) string {
	t.Helper()
	dir := filepath.Join(scratch, name)
	require.NoError(t, shell([]string{"CFLAGS=" + flags, "lib=" + dir + "/lib"}, "build_front "+dir+"; "+core))
	return dir
}

func TestValgrind(t *testing.T) {
	tool(t, "valgrind")
	// Go tells valgrind what its memory manager does only if it is built for that.
	dir := variant(t, "valgrind", "-g", "build_core $lib/libredlock-core.so -tags valgrind")
	server := testredis.Start(t)
	for _, run := range [][]string{{"quiet"}, {"misuse"}, {"verbs"}, {"events"}, {"stress", "4", "10"}} {
		t.Run(run[0], func(t *testing.T) {
			program := compile(t, dir, run[0])
			valgrind(t, append([]string{program, server.URL}, run[1:]...)...)
		})
	}
	t.Run("fork", func(t *testing.T) {
		valgrind(t, compile(t, dir, "fork"), "no_copy", server.URL)
	})
}

func valgrind(t *testing.T, command ...string) {
	t.Helper()
	suppressions, err := filepath.Abs("go.supp")
	require.NoError(t, err)
	// To interrupt a goroutine Go writes to its stack from a signal handler, which looks like bad memory. And it
	// takes a block into use before it says that the one which the collector freed there is gone, which valgrind can't bear.
	run(t, 5*time.Minute, []string{"GODEBUG=asyncpreemptoff=1", "GOGC=off"}, "valgrind", append([]string{
		"--quiet", "--error-exitcode=99", "--leak-check=full", "--suppressions=" + suppressions, "--gen-suppressions=all",
	}, command...)...)
}

func TestAddressSanitizer(t *testing.T) {
	sanitized(t, "address,undefined", "ASAN_OPTIONS=detect_leaks=1:abort_on_error=0", nil)
}

func TestThreadSanitizer(t *testing.T) {
	// Its shadow memory does not fit beside what newer kernels randomise.
	tool(t, "setarch")
	sanitized(t, "thread", "TSAN_OPTIONS=halt_on_error=1", []string{"setarch", "-R"})
}

func sanitized(t *testing.T, sanitizers, option string, wrapper []string) {
	t.Helper()
	flags := "-g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=" + sanitizers
	if !sanitizes(t, sanitizers) {
		drivers.Missing(t, "a cc with -fsanitize=%s", sanitizers)
	}
	dir := variant(t, strings.ReplaceAll(sanitizers, ",", "-"), flags, "ln -sf "+build(t)+"/lib/libredlock-core.so $lib")
	server := testredis.Start(t)
	for _, program := range [][]string{{"quiet"}, {"misuse"}, {"verbs"}, {"events"}, {"stress", "8", "60"}} {
		if sanitizers == "thread" && program[0] == "quiet" {
			continue // it counts threads, and this tool has one of its own
		}
		t.Run(program[0], func(t *testing.T) {
			command := append(append([]string{}, wrapper...), compile(t, dir, program[0], strings.Fields(flags)...), server.URL)
			command = append(command, program[1:]...)
			run(t, 3*time.Minute, []string{option}, command[0], command[1:]...)
		})
	}
}

// sanitizes tells whether the compiler can make such a program.
func sanitizes(t *testing.T, sanitizers string) bool {
	source := filepath.Join(t.TempDir(), "empty.c")
	require.NoError(t, os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o644))
	return exec.Command("cc", "-fsanitize="+sanitizers, "-o", source+".out", source).Run() == nil
}
