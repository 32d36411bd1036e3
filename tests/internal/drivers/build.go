package drivers

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// cFlags are those that all C of the project compiles with.
var cFlags = []string{"-std=c99", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"}

// command builds a driver and gives what runs it as a process.
func command(t testing.TB, name string) func() *exec.Cmd {
	t.Helper()
	script := filepath.Join(tests(), "drivers", "python", "driver.py")
	switch name {
	case "go":
		program := buildGo(t)
		return func() *exec.Cmd { return exec.Command(program) }
	case "c":
		program := buildC(t)
		return func() *exec.Cmd { return exec.Command(program) }
	case "c-async":
		program := buildC(t)
		return func() *exec.Cmd { return exec.Command(program, "--async") }
	case "python":
		Python(t) // what is missing is told now
		return func() *exec.Cmd { return Python(t, "-W", "error", script, "--sync") }
	case "python-async":
		Python(t)
		return func() *exec.Cmd { return Python(t, "-W", "error", script, "--async") }
	case "node":
		Node(t)
		return func() *exec.Cmd { return Node(t, filepath.Join(tests(), "drivers", "node", "driver.js")) }
	}
	t.Fatalf("no driver is called %q", name)
	return nil
}

// Missing ends a test that needs a tool or a file which isn't there: it fails if REDLOCK_STRICT is 1, as
// ./build.sh test sets it, else it is skipped.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	message := fmt.Sprintf(format, args...)
	if os.Getenv("REDLOCK_STRICT") == "1" {
		t.Fatal("missing: " + message)
	}
	t.Skip("SKIPPED, missing: " + message)
}

// tests is the folder of the tests' module.
func tests() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// buildDir is where ./build.sh lib puts what it makes.
func buildDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("REDLOCK_BUILD")
	if dir == "" {
		dir = filepath.Join(tests(), "..", "build")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "lib", "libredlock.so")); err != nil {
		Missing(t, "%s/lib/libredlock.so (./build.sh lib makes it)", dir)
	}
	return dir
}

// CompileC compiles a C program as any user of the library would: by what pkg-config says.
func CompileC(t testing.TB, program string, sources ...string) {
	t.Helper()
	build := buildDir(t)
	for _, tool := range []string{"cc", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			Missing(t, "%s", tool)
		}
	}
	config := exec.Command("pkg-config", "--cflags", "--libs", "redlock")
	config.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(build, "lib", "pkgconfig"))
	flags, err := config.Output()
	if err != nil {
		t.Fatalf("pkg-config redlock: %v", err)
	}
	args := slices.Concat([]string{"-c", `exec cc "$@" ` + strings.TrimSpace(string(flags)), "sh"}, cFlags, sources,
		[]string{"-o", program, "-Wl,-rpath," + filepath.Join(build, "lib")})
	run(t, exec.Command("sh", args...)) // a shell, since pkg-config quotes for one
}

func buildC(t testing.TB) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "driver-c")
	sources, err := filepath.Glob(filepath.Join(tests(), "drivers", "c", "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	CompileC(t, program, sources...)
	return program
}

func buildGo(t testing.TB) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "driver-go")
	cmd := exec.Command("go", "build", "-o", program, "./drivers/go")
	cmd.Dir = tests()
	run(t, cmd)
	return program
}

// run runs a compiler.
func run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, output)
	}
}

// Python gives a command that runs the interpreter with the package from the checkout.
func Python(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	build := buildDir(t)
	interpreter := cmp.Or(os.Getenv("REDLOCK_PYTHON"), "python3")
	if _, err := exec.LookPath(interpreter); err != nil {
		Missing(t, "%s (REDLOCK_PYTHON names the interpreter)", interpreter)
	}
	source := filepath.Join(tests(), "..", "bindings", "python", "src")
	if _, err := os.Stat(filepath.Join(source, "libredlock")); err != nil {
		Missing(t, "%s/libredlock", source)
	}
	cmd := exec.Command(interpreter, args...)
	cmd.Env = append(os.Environ(),
		"PYTHONPATH="+source,
		"PYTHONDONTWRITEBYTECODE=1",
		"REDLOCK_LIBRARY="+filepath.Join(build, "lib", "libredlock.so"))
	return cmd
}

// Node gives a command that runs Node.js with the package from the checkout. A warning of it is an error.
func Node(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	interpreter := cmp.Or(os.Getenv("REDLOCK_NODE"), "node")
	if _, err := exec.LookPath(interpreter); err != nil {
		Missing(t, "%s (REDLOCK_NODE names the interpreter)", interpreter)
	}
	module := filepath.Join(buildDir(t), "redlock.wasm")
	dependencies := filepath.Join(tests(), "..", "bindings", "node", "node_modules")
	for path, maker := range map[string]string{module: "./build.sh wasm", dependencies: "npm ci in bindings/node"} {
		if _, err := os.Stat(path); err != nil {
			Missing(t, "%s (%s makes it)", path, maker)
		}
	}
	cmd := exec.Command(interpreter, append([]string{"--throw-deprecation", "--unhandled-rejections=strict"}, args...)...)
	cmd.Env = append(os.Environ(), "REDLOCK_WASM="+module)
	return cmd
}
