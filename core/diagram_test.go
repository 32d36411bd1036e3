package core

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDiagram: docs/design.md draws exactly the transitions of the table.
func TestDiagram(t *testing.T) {
	var want strings.Builder
	want.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> asking: Acquire\n")
	for _, tr := range transitions {
		to := stateNames[tr.to]
		if tr.to == ended {
			to = "[*]"
		}
		want.WriteString("    " + stateNames[tr.from] + " --> " + to + ": " + triggerNames[tr.on] + "\n")
	}
	want.WriteString("```\n")
	page, err := os.ReadFile("../docs/design.md")
	require.NoError(t, err)
	require.Contains(t, string(page), want.String(), "paste this into docs/design.md:\n%s", want.String())
}
