package drivers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// cFlags are those that all C of the project compiles with.
var cFlags = []string{"-std=c99", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"}

// command builds a driver and gives what runs it as a process.
func command(t testing.TB, name string) func() *exec.Cmd {
	t.Helper()
	var program []string
	var environment []string
	switch name {
	case "go":
		program = []string{buildGo(t)}
	case "c":
		program = []string{buildC(t)}
	case "c-async":
		program = []string{buildC(t), "--async"}
	case "python":
		program, environment = python(t, "--sync")
	case "python-async":
		program, environment = python(t, "--async")
	default:
		t.Fatalf("no driver is called %q", name)
	}
	return func() *exec.Cmd {
		cmd := exec.Command(program[0], program[1:]...)
		cmd.Env = append(os.Environ(), environment...)
		return cmd
	}
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

// buildC compiles the C driver as any user of the library would: by what pkg-config says.
func buildC(t testing.TB) (program string) {
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
	return compile(t, "driver-c", func(output string) *exec.Cmd {
		sources, _ := filepath.Glob(filepath.Join(tests(), "drivers", "c", "*.c"))
		args := append(append([]string{}, cFlags...), sources...)
		args = append(args, "-o", output)
		args = append(args, strings.Fields(string(flags))...)
		return exec.Command("cc", append(args, "-Wl,-rpath,"+filepath.Join(build, "lib"))...)
	})
}

func buildGo(t testing.TB) (program string) {
	t.Helper()
	return compile(t, "driver-go", func(output string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-o", output, "./drivers/go")
		cmd.Dir = tests()
		return cmd
	})
}

// compile builds a program in the test's own folder.
func compile(t testing.TB, name string, command func(output string) *exec.Cmd) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	if output, err := command(program).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, output)
	}
	return program
}

// python runs the package from the checkout, with every warning an error.
func python(t testing.TB, mode string) (program, environment []string) {
	t.Helper()
	build := buildDir(t)
	interpreter := os.Getenv("REDLOCK_PYTHON")
	if interpreter == "" {
		interpreter = "python3"
	}
	if _, err := exec.LookPath(interpreter); err != nil {
		Missing(t, "%s (REDLOCK_PYTHON names the interpreter)", interpreter)
	}
	source := filepath.Join(tests(), "..", "bindings", "python", "src")
	if _, err := os.Stat(filepath.Join(source, "libredlock")); err != nil {
		Missing(t, "%s/libredlock", source)
	}
	script := filepath.Join(tests(), "drivers", "python", "driver.py")
	return []string{interpreter, "-W", "error", script, mode}, []string{
		"PYTHONPATH=" + source,
		"PYTHONDONTWRITEBYTECODE=1",
		"REDLOCK_LIBRARY=" + filepath.Join(build, "lib", "libredlock.so"),
	}
}
