package web

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// view returns a verifier's view of what a call changed through requests.
// Versions have the tokens of the changes, so that a restored item has its
// previous version.
func (c *Client) view(changes []effect.Change) verify.ResourceView {
	return callView{scheme{c}, changes}
}

type callView struct {
	scheme
	changes []effect.Change
}

// change returns the newest change of a resource. A verifier cannot read other
// resources, because it has no access to the network.
func (w callView) change(resource string) (effect.Change, error) {
	for i := len(w.changes) - 1; i >= 0; i-- {
		if c := w.changes[i]; c.Scheme == schemeName && c.Resource == resource {
			return c, nil
		}
	}
	return effect.Change{}, fmt.Errorf("%s: the call did not change it, so that it cannot be looked at", resource)
}

// Version reads the version from the service.
func (w callView) Version(ctx context.Context, resource string) (string, error) {
	c, err := w.change(resource)
	if err != nil {
		return "", err
	}
	now, err := w.Settle(ctx, c)
	if err == nil && !now.Known() {
		err = errors.New("the service does not tell, or not yet")
	}
	return string(now), err
}

// Open is not available to verifiers: versions suffice.
func (w callView) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.New("the content of a service is read by requests, which verifiers do not send")
}

// Before is not available to verifiers.
func (w callView) Before(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.New("the previous content is stored only for the compensation")
}
