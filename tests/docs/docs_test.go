// Package docs tests that what the documents show and claim is true.
package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/internal/testredis"
)

// frames make a program of what the README shows of a language.
var frames = map[string]string{
	"go": `package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/libredlock/libredlock/core/redlock"
)

func pay(_ context.Context, fence uint64) error {
	_, err := fmt.Println("paid with", fence)
	return err
}

func render(_ context.Context, gpu int) error {
	_, err := fmt.Println("rendered on", gpu)
	return err
}

func run(ctx context.Context) error {
SNIPPET}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
`,
	"python": `def pay(fence: int) -> None:
    print("paid with", fence)


def render(gpu: int | None) -> None:
    print("rendered on", gpu)


SNIPPET`,
	"js": `function pay(fence) {
  console.log("paid with " + fence);
}

function render(gpu) {
  console.log("rendered on " + gpu);
}

SNIPPET`,
	"c": `#include <stdio.h>
#include <redlock.h>

static void pay(uint64_t fence) { printf("paid with %llu\n", (unsigned long long)fence); }

static void render(uint32_t gpu) { printf("rendered on %lu\n", (unsigned long)gpu); }

static int fail(const char *message) {
    fprintf(stderr, "%s\n", message);
    return 1;
}

int main(void) {
SNIPPET    return 0;
}
`,
}

var suffixes = map[string]string{"go": "go", "python": "py", "js": "mjs", "c": "c"}

func TestTheReadmesExamplesRun(t *testing.T) {
	server := testredis.Start(t)
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for language, frame := range frames {
		t.Run(language, func(t *testing.T) {
			blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1)
			require.Len(t, blocks, map[string]int{"go": 1, "python": 2, "js": 1, "c": 1}[language])
			program := strings.Replace(frame, "SNIPPET", blocks[0][1], 1)
			if language == "python" {
				program += blocks[1][1]
			}
			require.Contains(t, program, "redis://127.0.0.1:6379")
			program = strings.ReplaceAll(program, "redis://127.0.0.1:6379", server.URL)
			file := filepath.Join(t.TempDir(), "main."+suffixes[language])
			require.NoError(t, os.WriteFile(file, []byte(program), 0o600))

			output, err := command(t, language, file).CombinedOutput()
			require.NoError(t, err, "%s", output)
			require.Regexp(t, `^paid with \d{16}\nrendered on 0\n(paid with \d{16}\n)*$`, string(output))
			require.ElementsMatch(t, []string{"{orders:42}:redlock:mutex:fence:orders:42", "{gpu}:redlock:semaphore:fence:gpu"}, server.Keys())
		})
	}
}

// command runs a program as a user of the library would.
func command(t *testing.T, language, file string) *exec.Cmd {
	switch language {
	case "go":
		cmd := exec.Command("go", "run", file)
		cmd.Dir = ".." // the module whose dependencies it finds
		return cmd
	case "python":
		return drivers.Python(t, file)
	case "js":
		return drivers.NodeBesideThePackage(t, file)
	}
	program := strings.TrimSuffix(file, ".c")
	drivers.CompileC(t, program, file)
	return exec.Command(program)
}
