package wasm_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"

	"github.com/libredlock/libredlock/core"
	"github.com/libredlock/libredlock/core/driver"
	"github.com/libredlock/libredlock/tests/internal/testredis"
	"github.com/libredlock/libredlock/tests/internal/wasmhost"
)

// TestPanic: the machine's own invariant breaks in the middle of a release.
func TestPanic(t *testing.T) {
	host := linear(t, brokenModule(t), wasmhost.Options{})
	poisoned(t, host, "core: a hold that is held can't be released", func(_ *driver.Driver, hold *driver.Hold) *core.Error {
		return hold.Release()
	})
}

// TestOutOfMemory: the module traps, since the host limits its memory.
func TestOutOfMemory(t *testing.T) {
	host := linear(t, module(t), wasmhost.Options{MemoryPages: 128})
	poisoned(t, host, "unreachable", func(d *driver.Driver, _ *driver.Hold) *core.Error {
		return d.Do(context.Background(), &core.Acquire{Name: "y", Metadata: strings.Repeat("m", 8<<20)}).Err
	})
}

// TestReentry: the host steps from within its own host function.
func TestReentry(t *testing.T) {
	const message = "internal: called from within redis_send"
	for name, open := range hosts {
		t.Run(name, func(t *testing.T) {
			var host *wasmhost.Host
			var outer *wasmhost.Instance
			var inner error
			host = open(t, module(t), wasmhost.Options{OnSend: func() {
				_, _, inner = host.Reenter(outer).Step([]byte(`[0,[["tick"]]]`))
			}})
			outer = instance(t, host)
			machine, wrong := wasmhost.Open(outer, oneNode)
			require.Nil(t, wrong)
			if name == "linear" { // there is one error for both calls in Extism
				machine.Step(0, &core.Inspect{Op: 1, Name: "x"})
			} else {
				require.Panics(t, func() { machine.Step(0, &core.Inspect{Op: 1, Name: "x"}) })
			}
			require.EqualError(t, inner, message)
			_, _, err := host.Reenter(outer).Step([]byte(`[0,[["tick"]]]`))
			require.EqualError(t, err, message)
		})
	}
}

// TestLengths: a host that miscounts gets an error, not a trap.
func TestLengths(t *testing.T) {
	i := instance(t, linear(t, module(t), wasmhost.Options{}))
	call := func(name string, args ...uint64) uint64 {
		t.Helper()
		result, err := i.Call(name, args...)
		require.NoError(t, err)
		return result
	}
	require.EqualValues(t, 1, call("linear_abi"))
	require.Zero(t, call("linear_buffer", api.EncodeI32(-1)))
	require.NotZero(t, call("linear_buffer", 10))
	require.Equal(t, `"malformed: expected an array at byte 0"`, string(i.Read(call("linear_step", 0))))
	const message = `"internal: runtime error: slice bounds out of range [:1048576] with capacity 10"`
	require.Equal(t, message, string(i.Read(call("linear_step", 1<<20))))
	require.Equal(t, message, string(i.Read(call("linear_step", 0))), "for good")
}

// poisoned has a client with a hold and a request that waits. After one request has broken the instance every
// hold is lost, every request INTERNAL, and a client in a fresh instance works.
func poisoned(t *testing.T, host *wasmhost.Host, message string, breaks func(*driver.Driver, *driver.Hold) *core.Error) {
	server := testredis.Start(t)
	d := openDriver(t, host, server.URL)
	ctx := context.Background()
	acquire := func(name string, wait core.Duration) (*driver.Hold, *core.Error) {
		result := d.Do(ctx, &core.Acquire{Name: name, Wait: wait})
		return result.Hold, result.Err
	}
	broken, wrong := acquire("broken", 0)
	require.Nil(t, wrong)
	held, wrong := acquire("held", 0)
	require.Nil(t, wrong)
	lost := make(chan string, 1)
	held.OnLost(func(cause string) { lost <- cause })
	waited := make(chan *core.Error, 1)
	d.Submit(driver.Submission{
		Op:      d.Reserve(1),
		Request: &core.Acquire{Name: "held", Wait: core.Forever},
		Done:    func(r driver.Result) { waited <- r.Err },
	})

	requireInternal := func(err *core.Error) {
		t.Helper()
		require.NotNil(t, err)
		require.Equal(t, core.Internal, err.Status)
		require.Contains(t, err.Message, message)
	}
	requireInternal(breaks(d, broken))
	select {
	case cause := <-lost:
		require.Contains(t, cause, message)
	case <-time.After(time.Minute):
		require.Fail(t, "the hold is not lost")
	}
	requireInternal(<-waited)
	require.Zero(t, held.Remaining())
	requireInternal(held.Renew(ctx, 0))
	_, wrong = acquire("another", 0)
	requireInternal(wrong)

	d = openDriver(t, host, server.URL)
	_, wrong = acquire("another", 0)
	require.Nil(t, wrong)
}

func openDriver(t *testing.T, host *wasmhost.Host, url string) *driver.Driver {
	t.Helper()
	d, wrong := driver.Open(driver.Config{
		Nodes: []string{url}, Language: "go", NodeTimeout: 5 * time.Second,
		NewMachine: func(c core.Config) (driver.Machine, *core.Error) { return wasmhost.Open(instance(t, host), c) },
	})
	require.Nil(t, wrong)
	t.Cleanup(func() { d.Close() })
	return d
}

// brokenModule builds the module from sources in which a transition is missing.
func brokenModule(t *testing.T) []byte {
	t.Helper()
	state, err := filepath.Abs("../../core/state.go")
	require.NoError(t, err)
	source, err := os.ReadFile(state)
	require.NoError(t, err)
	const row = "{held, released, ended},"
	require.Contains(t, string(source), row)
	dir := t.TempDir()
	changed := filepath.Join(dir, "state.go")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(source), row, "", 1)), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{state: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	build := exec.Command("bash", "-c", `. ../../wasm/lib.sh && build_wasm "$1" -overlay "$1/overlay.json"`, "bash", dir)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	module, err := os.ReadFile(filepath.Join(dir, "redlock.wasm"))
	require.NoError(t, err)
	return module
}
