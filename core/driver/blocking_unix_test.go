//go:build unix

package driver

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair gives a blocking connection and its other end.
func pair(t *testing.T) (conn, other net.Conn) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	other, err = listener.Accept()
	require.NoError(t, err)
	conn, err = block(dialed)
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		other.Close()
	})
	return conn, other
}

func TestABlockingReadEndsByItsDeadline(t *testing.T) {
	conn, other := pair(t)
	buffer := make([]byte, 8)
	start := time.Now()
	require.NoError(t, conn.SetReadDeadline(start.Add(30*time.Millisecond)))
	_, err := conn.Read(buffer)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.GreaterOrEqual(t, time.Since(start), 30*time.Millisecond)
	_, err = conn.Read(buffer)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "a deadline that has passed ends the next read at once")

	require.NoError(t, conn.SetDeadline(time.Time{}))
	other.Write([]byte("late"))
	n, err := conn.Read(buffer)
	require.NoError(t, err)
	require.Equal(t, "late", string(buffer[:n]))
}

func TestABlockingReadEndsWhenEitherSideCloses(t *testing.T) {
	for _, side := range []string{"this", "the other"} {
		conn, other := pair(t)
		ended := make(chan error, 1)
		go func() {
			_, err := conn.Read(make([]byte, 8))
			ended <- err
		}()
		if side == "this" {
			conn.Close()
		} else {
			other.Close()
		}
		select {
		case err := <-ended:
			if side == "the other" {
				require.ErrorIs(t, err, io.EOF)
			}
			require.Error(t, err)
		case <-time.After(10 * time.Second):
			t.Fatal(side + " side closed, and the read goes on")
		}
	}
}
