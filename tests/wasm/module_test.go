package wasm_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/libredlock/libredlock/wasm/wire"
)

// TestSize: a page that loads the module, or an npm package that carries it, pays for its compressed size.
func TestSize(t *testing.T) {
	const largest = 850_000 // docs/rationale.md tells what it is spent on
	compress := exec.Command("gzip", "-9")
	compress.Stdin = bytes.NewReader(module(t))
	packed, err := compress.Output()
	require.NoError(t, err)
	t.Logf("%d bytes, %d compressed", len(module(t)), len(packed))
	require.LessOrEqual(t, len(packed), largest)
}

// TestInterface: what the module imports and exports is what docs/reference.md tells hosts.
func TestInterface(t *testing.T) {
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	compiled, err := runtime.CompileModule(ctx, module(t))
	require.NoError(t, err)
	reference, err := os.ReadFile("../../docs/reference.md")
	require.NoError(t, err)
	_, told, found := strings.Cut(string(reference), "## The plugin")
	require.True(t, found)
	for _, f := range compiled.ImportedFunctions() {
		from, name, _ := f.Import()
		require.Contains(t, []string{"wasi_snapshot_preview1", "extism:host/env", "extism:host/user"}, from)
		require.True(t, strings.Contains(told, "`"+name+"`"), "%s of %s is imported, which docs/reference.md does not tell", name, from)
	}
	var exports []string
	for name := range compiled.ExportedFunctions() {
		exports = append(exports, name)
	}
	slices.Sort(exports)
	require.Equal(t, []string{"_initialize", "abi", "linear_abi", "linear_buffer", "linear_step", "step"}, exports)
}

// TestVersion: the plugin has the version of the C library.
func TestVersion(t *testing.T) {
	header, err := os.ReadFile("../../capi/redlock.h")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^#define REDLOCK_VERSION "(.*)"$`).FindStringSubmatch(string(header))
	require.NotNil(t, found)
	require.Equal(t, found[1], wire.Version)
}
