package core

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/libredlock/libredlock/core/script"
)

// A token is the value that stands at a lock's key: "rl1:" (its release is told to those who wait: handed over to the
// first in the queue, published on several nodes) or "rl0:" (it is not), 22 characters of base64url, ":" and who. The random part of an acquire's nth attempt is its seed + n.
const (
	tellingPrefix = "rl1:"
	silentPrefix  = "rl0:"
	secretBytes   = 22
)

func newToken(prefix string, seed [16]byte, attempt int, who string) string {
	for i := len(seed) - 1; i >= 0 && attempt > 0; i-- { // seed + attempt, as one number
		sum := int(seed[i]) + attempt&0xff
		seed[i] = byte(sum)
		attempt = attempt>>8 + sum>>8
	}
	token := make([]byte, 0, len(silentPrefix)+secretBytes+1+MaxWhoBytes) // stays on the stack
	token = append(token, prefix...)
	token = base64.RawURLEncoding.AppendEncode(token, seed[:])
	token = append(token, ':')
	return string(append(token, who...))
}

// splitToken gives the random part and who, or the whole value and "" if another library wrote it.
func splitToken(value string) (secret, who string) {
	end := len(silentPrefix) + secretBytes
	if len(value) > end && (strings.HasPrefix(value, silentPrefix) || strings.HasPrefix(value, tellingPrefix)) && value[end] == ':' {
		return value[len(silentPrefix):end], unescape(value[end+1:])
	}
	return value, ""
}

// Who names a process, for Config.Who.
func Who(host string, pid int, language string) string {
	host = Escape(host)
	return host[:min(len(host), maxHostBytes)] + "/" + strconv.Itoa(pid) + "/" + Escape(language)
}

// maxHostBytes leaves room in MaxWhoBytes for the metadata of an acquire.
const maxHostBytes = 64

// Escape percent-encodes a part of Config.Who.
func Escape(text string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			out.WriteByte(c)
		} else {
			out.WriteString(string([]byte{'%', digits[c>>4], digits[c&15]}))
		}
	}
	return out.String()
}

func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD")
}

// holderOf describes a value that stands at a lock's key.
func holderOf(value string) Holder {
	secret, who := splitToken(value)
	return Holder{Who: who, Digest: script.Digest(secret)}
}

// checkName says what is wrong with a name, prefix included; "" if nothing.
func checkName(name string) string {
	switch {
	case name == "":
		return "the name is empty; 1 to 1024 bytes are allowed"
	case len(name) > MaxNameBytes:
		return "the name is " + strconv.Itoa(len(name)) + " bytes long; at most " + strconv.Itoa(MaxNameBytes) + " are allowed"
	case !utf8.ValidString(name):
		return "the name is not valid UTF-8"
	case strings.IndexByte(name, 0) >= 0:
		return "the name has a NUL byte; any other character is allowed"
	case name[0] == '{' && strings.Contains(name, "}:redlock:"):
		return "the name begins like libredlock's own keys ({...}:redlock:)"
	}
	return ""
}

// hashTag is the part of a key that Redis Cluster hashes.
func hashTag(key string) string {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}
