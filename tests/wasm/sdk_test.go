package wasm_test

import (
	"context"
	"fmt"
	"testing"

	extism "github.com/extism/go-sdk"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/libredlock/libredlock/tests/internal/wasmhost"
	"github.com/libredlock/libredlock/wasm/wire"
)

// sdkPlugin is the module in Extism's SDK for Go.
type sdkPlugin struct {
	t      *testing.T
	plugin *extism.Plugin
	sent   string // by redis_send, since the last step began
}

func newSDKPlugin(t *testing.T) *sdkPlugin {
	t.Helper()
	ctx := context.Background()
	p := &sdkPlugin{t: t}
	send := extism.NewHostFunctionWithStack("redis_send", func(_ context.Context, current *extism.CurrentPlugin, stack []uint64) {
		text, err := current.ReadString(stack[0])
		require.NoError(t, err)
		p.sent += text // twice in one step would be seen
	}, []extism.ValueType{extism.ValueTypePTR}, nil)
	cache, err := wasmhost.Cache()
	require.NoError(t, err)
	plugin, err := extism.NewPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: module(t)}}},
		extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(cache)},
		[]extism.HostFunction{send})
	require.NoError(t, err)
	t.Cleanup(func() { plugin.Close(ctx) })
	p.plugin = plugin
	return p
}

func (p *sdkPlugin) step(input string) string {
	p.t.Helper()
	p.sent = ""
	code, output, err := p.plugin.Call("step", []byte(input))
	require.NoError(p.t, err)
	require.Zero(p.t, code)
	return string(output)
}

// TestSDK: the module is a plugin as an SDK of Extism expects it.
func TestSDK(t *testing.T) {
	p := newSDKPlugin(t)
	code, output, err := p.plugin.Call("abi", nil)
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, fmt.Sprintf(`[1,%q]`, wire.Version), string(output))

	require.Equal(t, `[[[0,0,"",0,0,null,0]],[],null]`, p.step(`[0,[["open",["n:1"],"",0,0,"h",1,"go"]]]`))
	require.Empty(t, p.sent, "nothing to send")
	require.Equal(t, `[[],[],2000000]`,
		p.step(`[0,[["acquire",1,"mutex","x",0,0,0,null,false,false,null,0,"\udcff","000102030405060708090a0b0c0d0e0f",0]]]`))
	require.Regexp(t, `^\[\[\[1,0,2000000,\["EVALSHA","[0-9a-f]{40}",.*,"x",.*]]],\[]]$`, p.sent)
	require.Equal(t, `[[[1,0,"rl0:AAECAwQFBgcICQoLDA0ODw:h/1/go/%FF",7,9898000,null,0]],[],9898000]`, p.step(`[1,[["answer",1,[1,7]]]]`))
	require.Empty(t, p.sent)

	code, _, err = p.plugin.Call("step", []byte(`[2,[["tock"]]]`))
	require.ErrorContains(t, err, "malformed: expected an event")
	require.EqualValues(t, 1, code)
	require.Equal(t, `[[],[],9898000]`, p.step(`[2,[["tick"]]]`), "it goes on")
}
