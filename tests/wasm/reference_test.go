package wasm_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/wasmhost"
)

const reference = "../../docs/reference.md"

// TestReference replays the example of docs/reference.md to the letter. After an intended change:
//
//	go -C tests test ./wasm -run Reference -rewrite
//
// and read the difference.
func TestReference(t *testing.T) {
	page, err := os.ReadFile(reference)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), "### An acquire and a release on three nodes")
	require.True(t, found)
	text, example, found := strings.Cut(rest, "```text\n")
	require.True(t, found)
	example, after, found := strings.Cut(example, "```\n")
	require.True(t, found)
	require.Greater(t, strings.Count(example, "in   ["), 5)
	eachHost(t, func(t *testing.T, host *wasmhost.Host) {
		actual := replay(t, instance(t, host), example)
		if flag.Lookup("rewrite").Value.String() == "true" { // datadriven's flag
			page := before + "### An acquire and a release on three nodes" + text + "```text\n" + actual + "```\n" + after
			require.NoError(t, os.WriteFile(reference, []byte(page), 0o600))
			return
		}
		require.Equal(t, example, actual)
	})
}

// replay feeds the lines that begin with "in" and gives them back with what comes of them.
func replay(t *testing.T, i *wasmhost.Instance, example string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(example) {
		input, found := strings.CutPrefix(line, "in   ")
		switch {
		case found:
			output, sent, err := i.Step([]byte(strings.TrimSuffix(input, "\n")))
			require.NoError(t, err, line)
			fmt.Fprintf(&out, "%sout  %s\n", line, output)
			if sent != nil {
				fmt.Fprintf(&out, "send %s\n", sent)
			}
		case !strings.HasPrefix(line, "out  ") && !strings.HasPrefix(line, "send "):
			out.WriteString(line)
		}
	}
	return out.String()
}
