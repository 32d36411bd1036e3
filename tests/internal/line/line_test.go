package line_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/line"
)

func TestRoundTrip(t *testing.T) {
	l := &line.Line{ID: "7", Word: "acquire"}
	l.Add("name", "a b%\x00\xff\n=ü")
	l.AddInt("ttl_ms", -5)
	l.Add("node", "1")
	l.Add("node", "")
	text := l.String()
	require.Equal(t, "7 acquire name=a%20b%25%00%FF%0A=%C3%BC ttl_ms=-5 node=1 node=", text)
	back, err := line.Parse(text)
	require.NoError(t, err)
	require.Equal(t, l, back)

	ttl, err := back.Int("ttl_ms", 0)
	require.NoError(t, err)
	require.EqualValues(t, -5, ttl)
	wait, err := back.Int("wait_ms", -1)
	require.NoError(t, err)
	require.EqualValues(t, -1, wait)
	_, err = back.Int("name", 0)
	require.Error(t, err)
	require.Equal(t, []string{"1", ""}, back.All("node"))
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "7", "7 ", " OK", "7 OK x", "7 OK =x", "7 OK x=%4", "7 OK x=%zz"} {
		_, err := line.Parse(text)
		require.Error(t, err, "%q", text)
	}
}
