package docs

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core"
)

// TestStatusesAgree: the statuses of core stand in the C header, in Python, in Node and in the reference, with the same
// names and numbers, and no others do.
func TestStatusesAgree(t *testing.T) {
	want := map[string]int{}
	for s := core.OK; s <= core.Internal; s++ {
		want[s.String()] = int(s)
	}
	require.Len(t, want, 12)
	require.Contains(t, (core.Internal + 1).String(), "12", "there is none after INTERNAL")
	for _, place := range []struct{ file, section, row string }{
		{"../../capi/redlock.h", `(?s)typedef enum redlock_status \{(.*?)\}`, `REDLOCK_(?P<name>\w+) = (?P<number>\d+)`},
		{"../../bindings/python/src/libredlock/errors.py", `(?s)class Status\(IntEnum\):(.*?)\nclass `, `(?m)^    (?P<name>[A-Z_]+) = (?P<number>\d+)$`},
		{"../../bindings/node/src/errors.js", `(?s)Status = Object\.freeze\(\{(.*?)\}\)`, `(?m)^  (?P<name>[A-Z_]+): (?P<number>\d+),$`},
		{"../../bindings/node/src/index.d.ts", `(?s)Status: Readonly<\{(.*?)\}>`, `(?m)^  (?P<name>[A-Z_]+): (?P<number>\d+);$`},
		{"../../docs/reference.md", `(?s)## Statuses\n(.*?)\n## `, `(?m)^\| (?P<number>\d+) \| (?P<name>[A-Z_]+) \|`},
	} {
		text, err := os.ReadFile(place.file)
		require.NoError(t, err)
		section := regexp.MustCompile(place.section).FindSubmatch(text)
		require.NotNil(t, section, "%s: no %s", place.file, place.section)
		row := regexp.MustCompile(place.row)
		name, number := row.SubexpIndex("name"), row.SubexpIndex("number")
		got := map[string]int{}
		for _, match := range row.FindAllSubmatch(section[1], -1) {
			got[string(match[name])], err = strconv.Atoi(string(match[number]))
			require.NoError(t, err)
		}
		require.Equal(t, want, got, place.file)
	}
}
