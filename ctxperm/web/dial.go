package web

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/remit-dev/remit/ctxperm"
)

// Dial opens a connection to the host of a URL, for a permit that covers
// "connect", with the method, on the resource of that URL. The client resolves
// the name once, and checks each address that it dials, as for a request. It
// adds no credential. An address that is not on the public internet is
// ErrDenied, unless Options.Allow has its network.
func (c *Client) Dial(ctx context.Context, p ctxperm.Permit, method string, to Target) (net.Conn, error) {
	if !p.Covers(connect(method, to)) {
		return nil, fmt.Errorf("connect %s: %w: the permit was not given for it", to.Masked(), ctxperm.ErrDenied)
	}
	conn, err := c.dialer.DialContext(ctx, "tcp", hostPort(to.resource.Host(), to.resource.Port()))
	var refused *addressError
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("%w: %w", ctxperm.ErrDenied, refused)
	}
	return conn, err
}
