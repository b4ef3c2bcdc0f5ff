//go:build !portable

package agentguard

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/internal/hookclient"
)

// dial connects to the resident process. It names the folder by its descriptor,
// because the path of a socket has at most 107 bytes.
func dial(ctx context.Context, home string) (net.Conn, error) {
	dir, err := os.Open(filepath.Join(home, filepath.FromSlash(hookclient.Folder)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), hookclient.Socket))
}
