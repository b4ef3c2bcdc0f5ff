//go:build portable || !linux

package agentguard

import (
	"context"
	"net"

	"github.com/remit-dev/remit/internal/hookclient"
)

// dial connects to the resident process.
func dial(ctx context.Context, home string) (net.Conn, error) {
	path, err := hookclient.Address(home)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
