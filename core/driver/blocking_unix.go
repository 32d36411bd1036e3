//go:build unix

package driver

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// blocking is a connection whose reads block the caller's thread until the reply is there, instead of
// parking its goroutine. A lone caller gains by it: with Go's poller another thread would first be woken to
// see that the reply is there, and then wake the caller's (docs/rationale.md has the numbers).
type blocking struct {
	file     *os.File
	raw      syscall.RawConn // of file
	deadline time.Time       // of reads. A lone command always fits into the socket's buffer, so writes need none
	timeout  time.Duration   // as the socket has it
	network  net.Conn        // closed; for its addresses
}

// block turns a connection into a blocking one.
func block(conn net.Conn) (net.Conn, error) {
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1 // of our own, since conn's belongs to the poller
	control := raw.Control(func(original uintptr) {
		if fd, err = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return
		}
		limit := unix.NsecToTimeval(connectTime.Nanoseconds()) // never reached: see deadline
		if err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err == nil {
			err = unix.SetNonblock(fd, false)
		}
		if err != nil {
			unix.Close(fd)
		}
	})
	if control != nil {
		return nil, control
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "socket")
	if raw, err = file.SyscallConn(); err != nil {
		file.Close()
		return nil, err
	}
	return &blocking{file: file, raw: raw, network: conn}, nil
}

func (b *blocking) Read(buffer []byte) (n int, err error) {
	outer := b.raw.Read(func(fd uintptr) bool {
		for {
			if err = b.limit(int(fd)); err != nil {
				return true
			}
			n, err = unix.Read(int(fd), buffer)
			if err != unix.EINTR && (err != unix.EAGAIN || b.deadline.IsZero() || !time.Now().Before(b.deadline)) {
				return true
			}
		}
	})
	switch {
	case outer != nil:
		return 0, outer
	case err == unix.EAGAIN:
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0 && len(buffer) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// limit lets the next read end by the deadline. It is most often as far away as it was for the last, so that
// the socket has the timeout already.
func (b *blocking) limit(fd int) error {
	var timeout time.Duration // 0: none
	if !b.deadline.IsZero() {
		left := time.Until(b.deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		// The kernel's timers are late by up to an eighth: so it is asked for less, and then for the rest.
		timeout = (left - left/8).Truncate(time.Millisecond) + time.Millisecond
	}
	if timeout == b.timeout {
		return nil
	}
	value := unix.NsecToTimeval(timeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &value); err != nil {
		return err
	}
	b.timeout = timeout
	return nil
}

func (b *blocking) Write(data []byte) (int, error) { return b.file.Write(data) }

// Close wakes a read that is under way.
func (b *blocking) Close() error {
	b.raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	return b.file.Close()
}

func (b *blocking) LocalAddr() net.Addr                   { return b.network.LocalAddr() }
func (b *blocking) RemoteAddr() net.Addr                  { return b.network.RemoteAddr() }
func (b *blocking) SetDeadline(at time.Time) error        { return b.SetReadDeadline(at) }
func (b *blocking) SetReadDeadline(at time.Time) error    { b.deadline = at; return nil }
func (b *blocking) SetWriteDeadline(time.Time) error      { return nil }
func (b *blocking) SyscallConn() (syscall.RawConn, error) { return b.raw, nil }
