// Package abi tests the C library as C programs see it: its symbols, its header, what it answers to
// bad input, threads and forks. The programs are in testdata; each ends with 0 if all its checks hold.
package abi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
)

const (
	root = "../.."
	capi = root + "/capi"
)

// scratch lives as long as the tests do.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "redlock-abi")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		scratch = dir
		return m.Run()
	}())
}

// built is the folder of the library: the one that REDLOCK_BUILD names, or one that is built now.
var built = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("REDLOCK_BUILD"); dir != "" {
		return filepath.Abs(dir)
	}
	dir := filepath.Join(scratch, "build")
	return dir, shell(nil, "build_lib "+dir)
})

func build(t testing.TB) string {
	t.Helper()
	dir, err := built()
	require.NoError(t, err)
	return dir
}

// shell runs a command of capi/lib.sh.
func shell(env []string, command string) error {
	cmd := exec.Command("bash", "-c", "set -euo pipefail; source "+capi+"/lib.sh; "+command)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}

// strict is C as the library's users may write it, and as all C here is written.
var strict = []string{"-Wall", "-Wextra", "-Werror", "-pedantic"}

// compile makes a program of testdata/name.c against the library in dir.
func compile(t testing.TB, dir, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-std=gnu99", "-g", "-o", out, "testdata/" + name + ".c"}, strict...)
	args = append(args, flags...)
	args = append(args, "-I"+dir+"/include", "-L"+dir+"/lib", "-Wl,-rpath,"+dir+"/lib", "-lredlock", "-pthread")
	output(t, "cc", args...)
	return out
}

// output runs a command that must succeed within a minute.
func output(t testing.TB, name string, args ...string) string {
	t.Helper()
	return run(t, time.Minute, nil, name, args...)
}

func run(t testing.TB, limit time.Duration, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second // for children that keep the pipe
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(cmd.Args, " "), out)
	return string(out)
}

func tool(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		drivers.Missing(t, "%s", name)
	}
}
