package testredis

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// A frame is one command or reply of the Redis protocol
// (https://redis.io/docs/latest/develop/reference/protocol-spec/), as it was on the wire.
type frame struct {
	raw  []byte
	args []string // the strings in it, in order: of a command its name and arguments
}

// push tells whether the frame is a message that no command asked for.
func (f *frame) push() bool { return f.raw[0] == '>' }

// readFrame reads one frame of RESP2 or RESP3.
func readFrame(r *bufio.Reader) (*frame, error) {
	f := &frame{}
	if err := f.read(r); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *frame) read(r *bufio.Reader) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	if len(line) < 3 {
		return fmt.Errorf("not RESP: %q", line)
	}
	f.raw = append(f.raw, line...)
	text := string(line[1 : len(line)-2])
	switch line[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		f.args = append(f.args, text)
		return nil
	case '$', '=', '!':
		return f.readString(r, text)
	case '*', '~', '>', '%', '|':
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("not RESP: %q", line)
		}
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		if line[0] == '|' {
			n++ // an attribute goes before the value that it describes
		}
		for range max(n, 0) {
			if err := f.read(r); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("not RESP: %q", line)
}

func (f *frame) readString(r *bufio.Reader, length string) error {
	n, err := strconv.Atoi(length)
	if err != nil {
		return fmt.Errorf("not RESP: a string of %q bytes", length)
	}
	if n < 0 { // the nil of RESP2
		f.args = append(f.args, "")
		return nil
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	f.raw = append(f.raw, body...)
	f.args = append(f.args, string(body[:n]))
	return nil
}
