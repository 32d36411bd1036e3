package core_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allowed are core's own imports: no I/O, no clock, no randomness.
var allowed = []string{
	"cmp", "container/heap", "encoding/base64", "maps", "math", "math/bits", "slices", "strconv", "strings", "unicode/utf8",
	"github.com/libredlock/libredlock/core/script",
}

// forbidden must not come in with those either: they make the plugin large and slow to start.
var forbidden = []string{"os", "fmt", "reflect", "crypto/sha1", "encoding/json", "net", "math/rand", "math/rand/v2", "os/exec", "log"}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

func TestImports(t *testing.T) {
	require.Subset(t, allowed, goList(t, "-f", `{{join .Imports "\n"}}`, "."))
	require.Subset(t, []string{"embed", "math/bits"}, goList(t, "-f", `{{join .Imports "\n"}}`, "./script"))
	all := goList(t, "-deps", ".")
	for _, name := range forbidden {
		require.NotContains(t, all, name)
	}
}
