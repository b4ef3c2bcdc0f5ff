package gateway

import "github.com/modelcontextprotocol/go-sdk/jsonrpc"

// Bounds on what a server asks of the gateway.
const (
	maxOwed = 1_000   // requests that have no answer yet
	maxID   = 1 << 10 // bytes of the id of one
)

// pendingServerRequests are the requests of a server that have no answer yet, by id, with their sizes. Each is in memory until its answer is written,
// which a server that does not read keeps from happening.
type pendingServerRequests struct {
	sizes map[any]int
	bytes int
}

// asked counts a request in; false where it is one too many, or of an id that has no answer yet.
func (o *pendingServerRequests) asked(r *jsonrpc.Request) bool {
	id := r.ID.Raw()
	text, _ := id.(string)
	if _, twice := o.sizes[id]; twice || len(text) > maxID || len(o.sizes) >= maxOwed {
		return false
	}
	o.sizes[id] = len(r.Params)
	o.bytes += len(r.Params)
	return o.bytes <= maxMessage
}

func (o *pendingServerRequests) answered(id any) {
	o.bytes -= o.sizes[id]
	delete(o.sizes, id)
}
