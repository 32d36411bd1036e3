package core

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/core/script"
)

func TestTokensOfAttemptsDiffer(t *testing.T) {
	for _, seed := range [][16]byte{{}, {15: 255}, {14: 255, 15: 250}, {13: 1, 14: 255, 15: 255}} {
		seen := map[string]bool{}
		for attempt := range 70_000 {
			seen[newToken(silentPrefix, seed, attempt, "who")] = true
		}
		require.Len(t, seen, 70_000)
	}
}

func TestTokensCountFromTheSeed(t *testing.T) {
	random := func(seed [16]byte, attempt int) []byte {
		bytes, err := base64.RawURLEncoding.DecodeString(newToken(silentPrefix, seed, attempt, "who")[4:26])
		require.NoError(t, err)
		return bytes
	}
	ones := [16]byte{}
	for i := range ones {
		ones[i] = 255
	}
	require.Equal(t, ones[:], random(ones, 0))
	require.Equal(t, make([]byte, 16), random(ones, 1), "the carry goes all the way, and over")
	require.Equal(t, []byte{12: 1, 15: 1}, random([16]byte{13: 255, 14: 255, 15: 255}, 2))
	require.Equal(t, []byte{13: 1, 14: 2, 15: 3}, random([16]byte{}, 0x010203))
}

func TestTokensAreSplit(t *testing.T) {
	token := newToken(silentPrefix, [16]byte{1}, 0, "host/1/go/"+Escape("a: b/c%"))
	secret, who := splitToken(token)
	require.Equal(t, token[4:26], secret)
	require.Equal(t, "host/1/go/a: b/c%", who)
	require.Equal(t, Holder{Who: who, Digest: script.Digest(secret)}, holderOf(token))
	require.NotContains(t, holderOf(token).Digest, secret)

	_, who = splitToken("rl1:" + token[4:])
	require.Equal(t, "host/1/go/a: b/c%", who)
	for _, foreign := range []string{"", "rl0:", "rl0:short:x", "rl2:" + token[4:], token[:26], "550e8400-e29b-41d4-a716-446655440000", "\xff\x00"} {
		secret, who = splitToken(foreign)
		require.Equal(t, foreign, secret)
		require.Empty(t, who)
	}
}

func TestEscape(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x3000; r++ {
		all.WriteRune(r)
	}
	all.WriteRune(0x1F512)
	require.Equal(t, all.String(), unescape(Escape(all.String())))
	for _, c := range Escape(all.String()) {
		require.True(t, c < 0x80 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%", c), "%q", c)
	}
	require.Equal(t, "a%2Fb%3A%25", Escape("a/b:%"))
	require.Equal(t, "%", unescape("%"))
	require.Equal(t, "%4", unescape("%4"))
	require.Equal(t, "%zz1", unescape("%zz1"))
	require.Equal(t, "\uFFFD", unescape("%ff"), "never what is not UTF-8")
}

// The examples of https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
func TestHashTags(t *testing.T) {
	for key, tag := range map[string]string{
		"orders":                 "orders",
		"{user1000}.following":   "user1000",
		"foo{}{bar}":             "foo{}{bar}",
		"foo{{bar}}zap":          "{bar",
		"foo{bar}{zap}":          "bar",
		"foo{bar":                "foo{bar",
		"foo}bar{":               "foo}bar{",
		"{}":                     "{}",
		"{user1000}.{followers}": "user1000",
	} {
		require.Equal(t, tag, hashTag(key), key)
		if !strings.Contains(tag, "}") { // else the name can't be used on a cluster
			require.Equal(t, tag, hashTag(sideKeysOf("mutex", key).counter), "the fence counter of %s is on its slot", key)
		}
	}
	require.NotEqual(t, sideKeysOf("mutex", "x").counter, sideKeysOf("mutex", "{x}").counter)
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", strings.Repeat("x", MaxNameBytes), "é", " ", "{a}b", "{a}:redlocks", "a{a}:redlock:", "\x01"} {
		require.Empty(t, checkName(good), "%q", good)
	}
	for _, bad := range []string{"", strings.Repeat("x", MaxNameBytes+1), "a\x00", "\xff", "é"[:1], sideKeysOf("mutex", "a").counter, "{a}:redlock:"} {
		require.NotEmpty(t, checkName(bad), "%q", bad)
	}
}

func TestWho(t *testing.T) {
	require.Equal(t, "web-1.example/4711/go", Who("web-1.example", 4711, "go"))
	require.Equal(t, "a%2Fb/1/c%2B%2B", Who("a/b", 1, "c++"))
	require.Equal(t, strings.Repeat("h", 64)+"/1/go", Who(strings.Repeat("h", 100), 1, "go"))
}
