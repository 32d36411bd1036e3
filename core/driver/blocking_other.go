//go:build !unix

package driver

import "net"

// block leaves a connection to Go's poller.
func block(conn net.Conn) (net.Conn, error) { return conn, nil }
