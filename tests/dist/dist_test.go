// Package dist tries what ./build.sh dist made as a user would: in an empty environment, far from the checkout.
package dist

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// elsewhere is where a thing is installed; its name has what careless scripts stumble over.
func elsewhere(t *testing.T) string {
	folder := filepath.Join(t.TempDir(), "somewhere else")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// made finds the one file in build/dist that matches.
func made(t *testing.T, pattern string) string {
	t.Helper()
	build := os.Getenv("REDLOCK_BUILD")
	if build == "" {
		if os.Getenv("REDLOCK_STRICT") != "" {
			t.Fatal("REDLOCK_BUILD is not set")
		}
		t.Skip("run by ./build.sh test, which runs ./build.sh dist first")
	}
	files, err := filepath.Glob(filepath.Join(build, "dist", pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("want one %s in %s/dist, got %v, %v", pattern, build, files, err)
	}
	file, err := filepath.Abs(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// in runs a command in a folder, in an environment that knows nothing of the checkout, and returns what it printed.
func in(t *testing.T, folder string, environment []string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = folder
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder}, environment...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", command, err, output, complaint.Bytes())
	}
	return string(output)
}

func TestWheel(t *testing.T) {
	wheel := made(t, "*.whl")
	if strings.HasSuffix(wheel, "-any.whl") {
		t.Errorf("%s has libraries of this platform, so it must name the platform", filepath.Base(wheel))
	}
	try, err := filepath.Abs("testdata/try.py")
	if err != nil {
		t.Fatal(err)
	}
	interpreter := os.Getenv("REDLOCK_PYTHON")
	if interpreter == "" {
		interpreter = "python3"
	}
	server := testredis.Start(t)
	folder := elsewhere(t)
	in(t, folder, nil, interpreter, "-m", "venv", "venv")
	fresh := filepath.Join(folder, "venv", "bin", "python")
	in(t, folder, nil, fresh, "-m", "pip", "install", "--quiet", "--no-index", wheel)
	printed := in(t, folder, nil, fresh, try, server.URL)
	if !regexp.MustCompile(`^(\d+\.\d+\.\d+\S* [1-9]\d+\n){2}$`).MatchString(printed) {
		t.Errorf("got %q", printed)
	}
	where := in(t, folder, nil, fresh, "-c", "import libredlock; print(libredlock.__file__)")
	if !strings.HasPrefix(where, folder) {
		t.Errorf("it imported %s", where)
	}
}

func TestNpmPackage(t *testing.T) {
	archive := made(t, "*.tgz")
	try, err := os.ReadFile("testdata/try.mjs")
	if err != nil {
		t.Fatal(err)
	}
	server := testredis.Start(t)
	folder := elsewhere(t)
	program := filepath.Join(folder, "try.mjs")
	if err := os.WriteFile(program, try, 0o600); err != nil {
		t.Fatal(err)
	}
	// As npm lays it out, but without asking a registry for what it depends on.
	installed := filepath.Join(folder, "node_modules", "libredlock")
	in(t, folder, nil, "mkdir", "-p", installed)
	in(t, folder, nil, "tar", "-xzf", archive, "-C", installed, "--strip-components=1")
	dependency, err := filepath.Abs("../../bindings/node/node_modules/ioredis")
	if err != nil {
		t.Fatal(err)
	}
	in(t, folder, nil, "ln", "-s", dependency, filepath.Join(folder, "node_modules"))
	printed := in(t, folder, nil, "node", program, server.URL)
	if !regexp.MustCompile(`^` + regexp.QuoteMeta(installed) + `/src/index\.js\n(\d{16}\n){2}$`).MatchString(printed) {
		t.Errorf("got %q", printed)
	}
	for _, name := range []string{"LICENSE", "README.md", "redlock.wasm", "src/index.d.ts"} {
		if _, err := os.Stat(filepath.Join(installed, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestArchive(t *testing.T) {
	archive := made(t, "*.tar.gz")
	server := testredis.Start(t)
	folder := elsewhere(t)
	in(t, folder, nil, "tar", "-xzf", archive, "--strip-components=1")
	for _, name := range []string{"LICENSE", "README.md", "include/redlock.h", "lib/libredlock.so", "lib/libredlock-core.so"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	examples, err := filepath.Glob(filepath.Join(folder, "examples", "*.c"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, example := range examples {
		t.Run(filepath.Base(example), func(t *testing.T) {
			// As a Makefile would; eval, since pkg-config escapes the spaces in its paths for a shell.
			in(t, folder, []string{"PKG_CONFIG_PATH=" + filepath.Join(folder, "lib", "pkgconfig"), "EXAMPLE=" + example}, "sh", "-c",
				`eval "cc -Wall -Wextra -Werror -pedantic -o try \"\$EXAMPLE\" $(pkg-config --cflags --libs redlock)"`)
			printed := in(t, folder, []string{"LD_LIBRARY_PATH=" + filepath.Join(folder, "lib")}, "./try", server.URL)
			if !strings.Contains(printed, "fence") {
				t.Errorf("got %q", printed)
			}
			for _, key := range server.Keys() {
				if !strings.Contains(key, ":fence:") {
					t.Errorf("%s was left", key)
				}
			}
		})
	}
}
