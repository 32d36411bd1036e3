// Package line is the protocol between the runner and the drivers: one request,
// reply or message a line. tests/drivers/README.md describes it.
package line

import (
	"fmt"
	"strconv"
	"strings"
)

// Unasked is the id of a line that answers no request.
const Unasked = "-"

// Line is one line: a request, whose word is a verb, a reply, whose word is a status, or a message.
type Line struct {
	ID     string
	Word   string
	Fields []Field
}

// Field is one key=value.
type Field struct{ Key, Value string }

// Add appends a field.
func (l *Line) Add(key, value string) { l.Fields = append(l.Fields, Field{key, value}) }

// AddInt appends a field with a number.
func (l *Line) AddInt(key string, value int64) { l.Add(key, strconv.FormatInt(value, 10)) }

// Lookup gives the first value of a key.
func (l *Line) Lookup(key string) (value string, found bool) {
	for _, field := range l.Fields {
		if field.Key == key {
			return field.Value, true
		}
	}
	return "", false
}

// Get gives the first value of a key, or "".
func (l *Line) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

// All gives every value of a key.
func (l *Line) All(key string) []string {
	var values []string
	for _, field := range l.Fields {
		if field.Key == key {
			values = append(values, field.Value)
		}
	}
	return values
}

// Int gives the first value of a key as a number, or absent if there is none.
func (l *Line) Int(key string, absent int64) (int64, error) {
	value, found := l.Lookup(key)
	if !found {
		return absent, nil
	}
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%s is no number", key, value)
	}
	return number, nil
}

// String writes the line without its newline.
func (l *Line) String() string {
	var out strings.Builder
	out.WriteString(l.ID + " " + l.Word)
	for _, field := range l.Fields {
		out.WriteString(" " + field.Key + "=" + escape(field.Value))
	}
	return out.String()
}

// Parse reads a line without its newline.
func Parse(text string) (*Line, error) {
	words := strings.Split(text, " ")
	if len(words) < 2 || words[0] == "" || words[1] == "" {
		return nil, fmt.Errorf("not a line of the protocol: %q", text)
	}
	l := &Line{ID: words[0], Word: words[1]}
	for _, word := range words[2:] {
		key, value, found := strings.Cut(word, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("not key=value: %q in %q", word, text)
		}
		value, err := Unescape(value)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, text)
		}
		l.Add(key, value)
	}
	return l, nil
}

func escape(value string) string {
	var out strings.Builder
	for i := 0; i < len(value); i++ {
		if c := value[i]; c > ' ' && c < 0x7f && c != '%' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// Unescape replaces each %XX by its byte.
func Unescape(value string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] != '%' {
			out.WriteByte(value[i])
			continue
		}
		if i+2 >= len(value) {
			return "", fmt.Errorf("a %% without two hex digits in %q", value)
		}
		c, err := strconv.ParseUint(value[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("a %% without two hex digits in %q", value)
		}
		out.WriteByte(byte(c))
		i += 2
	}
	return out.String(), nil
}
