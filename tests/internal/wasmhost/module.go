// Package wasmhost hosts redlock.wasm on wazero, as docs/reference.md ("The plugin: redlock.wasm") asks it of a host. It
// shares no code with package wire, so that what the two make of the contract is compared whenever they talk.
package wasmhost

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
)

// Module gives redlock.wasm; the error is os.ErrNotExist unless ./build.sh wasm has made it.
func Module() ([]byte, error) { return os.ReadFile(filepath.Join(buildDir(), "redlock.wasm")) }

// Kernel gives what Extism's SDKs put between a plugin and its host; this one is that of the Go SDK.
func Kernel() ([]byte, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk")
	list.Dir = filepath.Join(root(), "tests")
	dir, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", list, err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "extism-runtime.wasm"))
}

// Cache keeps compiled modules from one run of the tests to the next.
var Cache = sync.OnceValues(func() (wazero.CompilationCache, error) {
	return wazero.NewCompilationCacheWithDir(filepath.Join(buildDir(), "wazero"))
})

func buildDir() string { return cmp.Or(os.Getenv("REDLOCK_BUILD"), filepath.Join(root(), "build")) }

// root is the folder of the checkout.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
