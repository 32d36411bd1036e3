package wasmhost

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Host is the module, compiled, with what it imports.
type Host struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	kernel  api.Module // nil if the instances are stepped through linear memory
}

// Options are those of a host.
type Options struct {
	MemoryPages uint32 // of 64 KiB, at the most, for each instance; 0: no limit
	OnSend      func() // called within redis_send; may be nil
}

// Linear makes a host whose instances are stepped through linear memory.
func Linear(module []byte, o Options) (*Host, error) { return newHost(module, nil, o) }

// Extism makes a host whose instances are stepped as Extism plugins, by the SDKs' kernel but without an SDK. There is one kernel,
// so that only one of the instances may be in use at a time.
func Extism(module, kernel []byte, o Options) (*Host, error) { return newHost(module, kernel, o) }

func newHost(module, kernel []byte, o Options) (*Host, error) {
	ctx := context.Background()
	cache, err := Cache()
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache)
	if o.MemoryPages > 0 {
		config = config.WithMemoryLimitPages(o.MemoryPages)
	}
	h := &Host{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if err := h.provide(ctx, module, kernel, o.OnSend); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// provide compiles the module and makes what it imports.
func (h *Host) provide(ctx context.Context, module, kernel []byte, onSend func()) (err error) {
	if h.module, err = h.runtime.CompileModule(ctx, module); err != nil {
		return err
	}
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, h.runtime); err != nil {
		return err
	}
	send := func(ctx context.Context, stack []uint64) {
		ctx.Value(stepping{}).(*Instance).note(ctx, stack[0])
		if onSend != nil {
			onSend()
		}
	}
	_, err = h.runtime.NewHostModuleBuilder("extism:host/user").NewFunctionBuilder().
		WithGoFunction(api.GoFunc(send), []api.ValueType{api.ValueTypeI64}, nil).Export("redis_send").Instantiate(ctx)
	switch {
	case err != nil:
		return err
	case kernel == nil:
		return h.stubKernel(ctx)
	}
	h.kernel, err = h.runtime.InstantiateWithConfig(ctx, kernel, wazero.NewModuleConfig().WithName(kernelName))
	return err
}

const kernelName = "extism:host/env"

// stubKernel provides the functions of Extism's kernel that the module imports, none of which is called.
func (h *Host) stubKernel(ctx context.Context) error {
	kernel := h.runtime.NewHostModuleBuilder(kernelName)
	for _, f := range h.module.ImportedFunctions() {
		if from, name, _ := f.Import(); from == kernelName {
			kernel.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {
				panic("the linear entry has called Extism's " + name)
			}), f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	_, err := kernel.Instantiate(ctx)
	return err
}

// New makes an instance.
func (h *Host) New() (*Instance, error) {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	plugin, err := h.runtime.InstantiateModule(context.Background(), h.module, config)
	if err != nil {
		return nil, err
	}
	return h.enter(plugin), nil
}

// Reenter gives another way into an instance, for a call while it is being called: wazero's functions can't bear that.
func (h *Host) Reenter(i *Instance) *Instance { return h.enter(i.plugin) }

func (h *Host) enter(plugin api.Module) *Instance {
	i := &Instance{plugin: plugin}
	i.ctx = context.WithValue(context.Background(), stepping{}, i)
	if h.kernel != nil {
		i.entry = &extism{h.kernel, plugin.ExportedFunction("step")}
	} else {
		i.entry = &linear{plugin.Memory(), plugin.ExportedFunction("linear_buffer"), plugin.ExportedFunction("linear_step")}
	}
	return i
}

// Close ends the host and all its instances.
func (h *Host) Close() { h.runtime.Close(context.Background()) }
