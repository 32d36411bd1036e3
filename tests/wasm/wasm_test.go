// Package wasm_test tests redlock.wasm in hosts written in Go.
package wasm_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/wasmhost"
	"github.com/libredlock/libredlock/tests/trace"
)

// module reads redlock.wasm.
func module(t testing.TB) []byte {
	t.Helper()
	module, err := wasmhost.Module()
	if errors.Is(err, os.ErrNotExist) {
		drivers.Missing(t, "%v (./build.sh wasm makes it)", err)
	}
	require.NoError(t, err)
	return module
}

// hosts are the ways into the module.
var hosts = map[string]func(t testing.TB, module []byte, o wasmhost.Options) *wasmhost.Host{
	"linear": linear,
	"extism": func(t testing.TB, module []byte, o wasmhost.Options) *wasmhost.Host {
		kernel, err := wasmhost.Kernel()
		require.NoError(t, err)
		return ended(t)(wasmhost.Extism(module, kernel, o))
	},
}

func linear(t testing.TB, module []byte, o wasmhost.Options) *wasmhost.Host {
	t.Helper()
	return ended(t)(wasmhost.Linear(module, o))
}

// ended ends a host with the test.
func ended(t testing.TB) func(*wasmhost.Host, error) *wasmhost.Host {
	return func(h *wasmhost.Host, err error) *wasmhost.Host {
		t.Helper()
		require.NoError(t, err)
		t.Cleanup(h.Close)
		return h
	}
}

// eachHost runs a test by each way into the module.
func eachHost(t *testing.T, test func(t *testing.T, host *wasmhost.Host)) {
	for name, open := range hosts {
		t.Run(name, func(t *testing.T) { test(t, open(t, module(t), wasmhost.Options{})) })
	}
}

func instance(t testing.TB, host *wasmhost.Host) *wasmhost.Instance {
	t.Helper()
	i, err := host.New()
	require.NoError(t, err)
	t.Cleanup(i.Close)
	return i
}

// TestTraces replays the golden traces of core on the module: it is to do exactly what core does.
func TestTraces(t *testing.T) {
	eachHost(t, func(t *testing.T, host *wasmhost.Host) {
		trace.Walk(t, func(t *testing.T, config core.Config) (trace.Machine, *core.Error) {
			return wasmhost.Open(instance(t, host), config)
		})
	})
}
