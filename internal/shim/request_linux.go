//go:build amd64 || arm64

package shim

import "math"

// StartRequest is the first request to the shim. Signals can follow.
type StartRequest struct {
	Argv, Env []string
	Path      string // search path for the program, unless Env has a PATH
	Dir       string
	System    []string // paths of the host to show read-only
	Roots     []Root
	Network   bool
	// Loopback states that the network is the sandbox's own, and that the shim
	// must raise its loopback.
	Loopback bool
	// Proxy is the port of the loopback on which the shim listens for the
	// parent's proxy, before the program starts. 0: none. It needs Loopback.
	Proxy uint16
	// Namespaces states that the shim is process 1 of its own namespaces.
	// Otherwise it builds nothing: the program sees the host, as far as
	// Landlock permits.
	Namespaces bool
	Scratch    string // without namespaces: the folder that replaces /tmp
	Home       string // an empty writable folder that the program sees; empty: none
	// Terminal is 1 plus the descriptor, 0 to 2, of the program's controlling
	// terminal; 0: it has none.
	Terminal int
	Limits   Limits
	Filter   []byte   // the filter of system calls, in the kernel's format
	Plain    []byte   // the same for a kernel that cannot report calls
	Require  int      // the minimum level: 1 partial, 2 strict
	Missing  []string // layers that the parent knows to be missing
	Try      bool     // start no program: only try everything else
	Without  []string // layers that a test omits
}

// Root is a folder that the program sees.
type Root struct {
	Dir, Upper string
	Dev, Ino   uint64
	View       string
	Masked     []string
	Attached   bool // an overlay that the parent created; its descriptor comes with the request, one for each such root
}

// The views of a root.
const (
	Read    = "read"
	Overlay = "overlay"
	Direct  = "direct"
)

// Limits bounds the program. None is zero.
type Limits struct {
	Processes, Files, FileSize, Data, Scratch, CPU uint64 // CPU in seconds
}

// Signal is a message to the shim after the program has started: it sends this
// signal to the program's process group. Without namespaces, only the program
// gets it.
type Signal int

// Pack encodes a signal.
func (s *Signal) Pack() []byte {
	var p packer
	p.number(uint64(*s)) //nolint:gosec // small
	return p.out
}

// Unpack decodes what Pack wrote.
func (s *Signal) Unpack(in []byte) error {
	u := unpacker{in: in}
	*s = Signal(u.atMost(64)) //nolint:gosec // small
	return u.end()
}

// Message is a message of the shim.
type Message struct {
	Kind     Kind
	Why      string            // reason of a refusal
	Root     string            // with NoOverlay
	Missing  []string          // with Began: missing layers of the run
	Landlock int               // with Began: Landlock version of the kernel
	Level    int               // with Began
	Alone    string            // with Began: why the calls are not supervised
	Proxied  bool              // with Began: the last descriptor is the proxy's listener
	Exit     Exit              // with Ended
	Locked   []UnreadableEntry // with Ended
	Met      []Restriction     // with Ended: rules of the sandbox that the program met
}

// Restriction is a rule of the sandbox that a program met.
type Restriction struct {
	Rule string // name of the rule, such as "link"
	Text string // what the program requested, what it got instead, and what to do
}

// Kind is the kind of a message.
type Kind int

// The kinds of messages. All but the last two are refusals: the program was not
// started.
const (
	Failed       Kind = iota
	TooLow            // the required level is not available
	NoNamespaces      // the namespaces give no right to build anything
	NoOverlay         // a root cannot have an overlay
	Began             // the program was started; with a descriptor of each overlay's upper folder, and of the proxy's listener
	Ended             // the program and its processes have ended
)

// Exit describes how a program ended.
type Exit struct {
	Code   int // -1 if a signal ended it
	Signal int
	Left   int // number of processes that it left running
}

// UnreadableEntry is an entry of an upper folder that an ordinary user could
// not read until the shim changed its bits.
type UnreadableEntry struct {
	Upper int // index of the overlay
	Name  string
	Mode  uint32 // the previous bits
}

// Pack encodes a request.
func (o *StartRequest) Pack() []byte {
	var p packer
	p.list(o.Argv)
	p.list(o.Env)
	p.text(o.Path)
	p.text(o.Dir)
	p.list(o.System)
	p.number(uint64(len(o.Roots)))
	for _, r := range o.Roots {
		p.text(r.Dir)
		p.text(r.Upper)
		p.number(r.Dev)
		p.number(r.Ino)
		p.text(r.View)
		p.list(r.Masked)
		p.flag(r.Attached)
	}
	p.flag(o.Network)
	p.flag(o.Loopback)
	p.number(uint64(o.Proxy))
	p.flag(o.Namespaces)
	p.text(o.Scratch)
	p.text(o.Home)
	p.number(uint64(o.Terminal)) //nolint:gosec // small
	for _, v := range o.Limits.all() {
		p.number(*v)
	}
	p.text(string(o.Filter))
	p.text(string(o.Plain))
	p.number(uint64(o.Require)) //nolint:gosec // small
	p.list(o.Missing)
	p.flag(o.Try)
	p.list(o.Without)
	return p.out
}

func (l *Limits) all() [6]*uint64 {
	return [6]*uint64{&l.Processes, &l.Files, &l.FileSize, &l.Data, &l.Scratch, &l.CPU}
}

// Unpack decodes what Pack wrote.
func (o *StartRequest) Unpack(in []byte) error {
	u := unpacker{in: in}
	o.Argv, o.Env, o.Path, o.Dir, o.System = u.list(), u.list(), u.text(), u.text(), u.list()
	o.Roots = make([]Root, u.count())
	for i := range o.Roots {
		o.Roots[i] = Root{Dir: u.text(), Upper: u.text(), Dev: u.number(), Ino: u.number(), View: u.text(), Masked: u.list(), Attached: u.flag()}
	}
	o.Network, o.Loopback = u.flag(), u.flag()
	o.Proxy = uint16(u.atMost(math.MaxUint16)) //nolint:gosec // bounded
	o.Namespaces, o.Scratch = u.flag(), u.text()
	o.Home, o.Terminal = u.text(), int(u.atMost(3)) //nolint:gosec // small
	for _, v := range o.Limits.all() {
		*v = u.number()
	}
	o.Filter, o.Plain, o.Require = []byte(u.text()), []byte(u.text()), int(u.number()) //nolint:gosec // small
	o.Missing, o.Try, o.Without = u.list(), u.flag(), u.list()
	return u.end()
}

// Pack encodes a message.
func (m *Message) Pack() []byte {
	var p packer
	p.number(uint64(m.Kind)) //nolint:gosec // small
	p.text(m.Why)
	p.text(m.Root)
	p.text(m.Alone)
	p.flag(m.Proxied)
	p.list(m.Missing)
	for _, n := range []int{m.Landlock, m.Level, m.Exit.Code + 1, m.Exit.Signal, m.Exit.Left} {
		p.number(uint64(n)) //nolint:gosec // none is negative
	}
	p.number(uint64(len(m.Locked)))
	for _, l := range m.Locked {
		p.number(uint64(l.Upper)) //nolint:gosec // an index
		p.text(l.Name)
		p.number(uint64(l.Mode))
	}
	p.number(uint64(len(m.Met)))
	for _, r := range m.Met {
		p.text(r.Rule)
		p.text(r.Text)
	}
	return p.out
}

// Unpack decodes what Pack wrote.
func (m *Message) Unpack(in []byte) error {
	u := unpacker{in: in}
	small := func() int { return int(u.number()) } //nolint:gosec // small
	m.Kind, m.Why, m.Root, m.Alone = Kind(small()), u.text(), u.text(), u.text()
	m.Proxied, m.Missing = u.flag(), u.list()
	m.Landlock, m.Level = small(), small()
	m.Exit = Exit{Code: small() - 1, Signal: small(), Left: small()}
	m.Locked = make([]UnreadableEntry, u.count())
	for i := range m.Locked {
		m.Locked[i] = UnreadableEntry{Upper: small(), Name: u.text(), Mode: uint32(u.atMost(math.MaxUint32))} //nolint:gosec // bits of a mode
	}
	m.Met = make([]Restriction, u.count())
	for i := range m.Met {
		m.Met[i] = Restriction{Rule: u.text(), Text: u.text()}
	}
	return u.end()
}
