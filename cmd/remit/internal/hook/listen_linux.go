//go:build !portable

package hook

import (
	"fmt"
	"net"
	"os"

	"github.com/remit-dev/remit/internal/hookclient"
)

// listenAt makes the socket in a folder. It names the folder by its descriptor,
// because the path of a socket has at most 107 bytes.
func listenAt(_, dir string) (*net.UnixListener, error) {
	at, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }()
	name := fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), hookclient.Socket)
	return net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
}
