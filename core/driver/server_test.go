package driver

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// startRedis starts a redis-server on a unix socket, ended with the test.
func startRedis(t *testing.T, args ...string) (url string, client *redis.Client) {
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err, "these tests need a redis-server (apt-get install redis-server)")
	dir := t.TempDir()
	socket := filepath.Join(dir, "redis.sock")
	server := exec.Command(path, append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, args...)...)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 10*time.Second, 5*time.Millisecond, "redis-server does not answer")
	client = redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Protocol: 2})
	t.Cleanup(func() { client.Close() })
	return "unix://" + socket, client
}
