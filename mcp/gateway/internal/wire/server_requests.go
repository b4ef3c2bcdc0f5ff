package wire

import "github.com/modelcontextprotocol/go-sdk/jsonrpc"

// Bounds on the requests of a server to the gateway.
const (
	maxOwed = 1_000   // requests without a response
	maxID   = 1 << 10 // bytes of an ID
)

// pendingServerRequests holds the requests of a server without a response, by
// ID, with their sizes. Each stays in memory until its response is written,
// which a server can delay by not reading.
type pendingServerRequests struct {
	sizes map[any]int
	bytes int
}

// asked counts a request. It returns false if there are too many, or if the ID
// is in use.
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
