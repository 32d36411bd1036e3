package script_test

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

func TestDigest(t *testing.T) {
	texts := []string{"abc", "The quick brown fox jumps over the lazy dog", "\x00\xff"}
	for n := range 200 { // across the ends of blocks
		texts = append(texts, strings.Repeat("é", n)+strings.Repeat("a", n%2))
	}
	for _, s := range script.All {
		texts = append(texts, s.Source)
	}
	for _, text := range texts {
		sum := sha1.Sum([]byte(text))
		require.Equal(t, hex.EncodeToString(sum[:]), script.Digest(text), "%q", text)
	}
}

// preludes are the files that a kind's scripts have in common, in their order.
var preludes = map[string][]string{
	"mutex": {"queue", "mutex"}, "reentrant": {"queue", "reentrant"}, "rwlock": {"queue", "holders", "rwlock"}, "semaphore": {"queue", "holders", "semaphore"},
}

// TestScripts: each script is its own file behind what all share and what its kind has in common.
func TestScripts(t *testing.T) {
	for _, s := range script.All {
		kind, _, _ := strings.Cut(s.Name, "_")
		var source strings.Builder
		for _, name := range append(slices.Clone(preludes[kind]), s.Name) {
			source.WriteString(read(t, name))
		}
		require.Equal(t, source.String(), s.Source, s.Name)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name + ".lua")
	require.NoError(t, err)
	return string(text)
}
