//go:build portable || !linux

package hook

import (
	"net"

	"github.com/remit-dev/remit/internal/hookclient/netclient"
)

// listenAt makes the socket below the user's folder for state.
func listenAt(home, _ string) (*net.UnixListener, error) {
	path, err := netclient.Address(home)
	if err != nil {
		return nil, err
	}
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}
