//go:build portable || !linux

package agentguard

import (
	"context"
	"net"

	"github.com/remit-dev/remit/internal/hookclient/netclient"
)

// dial connects to the resident process.
func dial(ctx context.Context, home string) (net.Conn, error) {
	path, err := netclient.Address(home)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
