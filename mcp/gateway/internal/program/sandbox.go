package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/mcp/gateway/config"
)

// Sandbox is the sandbox of one server.
type Sandbox struct {
	driver  *process.Driver
	service process.ServerConfig
	Network bool
	err     error // why the sandbox is unavailable
}

// secrets are files that a server in the sandbox cannot see before its first
// call, when the policy has decided nothing. They are those that the workspace
// policy masks. Later the policy decides.
var secrets = slices.Concat(
	masking("", ".git", ".env", ".ssh", ".aws", ".gnupg", ".kube", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials",
		"credentials", "credentials.json", "credentials.csv", "credentials.toml", ".envrc", ".dockercfg", ".env~", "%23.env%23", ".docker/config.json"),
	masking(" except "+publicFiles, ".env.*", "..env.*", "*.env"),
	masking(" except "+publicFiles+fixtures, "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
		"*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.kdbx", "*.tfstate", "*.tfstate.backup",
		"*.key~", "*.key.bak", "*.key.old", "*.key.orig", "*.key.swp", "*.key.swo",
		"*.pem~", "*.pem.bak", "*.pem.old", "*.pem.orig", "*.pem.swp", "*.pem.swo"),
)

// masking returns masks of these names and everything below them, in each
// folder of each root.
func masking(except string, names ...string) (masks []string) {
	for _, name := range names {
		masks = append(masks, "file://*/**/"+name+"/**"+except)
	}
	return masks
}

const (
	publicFiles = "file://*/**/.env.dist file://*/**/.env.example file://*/**/.env.sample file://*/**/.env.template " +
		"file://*/**/ca-bundle.pem file://*/**/ca-cert.pem file://*/**/ca-certificates.pem file://*/**/ca.pem " +
		"file://*/**/cabundle.pem file://*/**/cacert.pem file://*/**/cacerts.jks file://*/**/cacerts.pem " +
		"file://*/**/cert.pem file://*/**/certificate.pem file://*/**/chain.pem file://*/**/example.env " +
		"file://*/**/fullchain.pem file://*/**/go.env file://*/**/id_dsa.pub file://*/**/id_ecdsa.pub " +
		"file://*/**/id_ed25519.pub file://*/**/id_rsa.pub file://*/**/rootca.pem file://*/**/sample.env " +
		"file://*/**/template.env file://*/**/tls-ca-bundle.pem file://*/**/truststore.jks"
	fixtures = " file://*/**/__fixtures__/** file://*/**/__tests__/** file://*/**/fixtures/** file://*/**/src/test/** " +
		"file://*/**/testdata/** file://*/**/tests/** file://*/test/**"
)

// NewSandbox determines what a server can see of the roots, which are
// folders by name. With an error it returns a
// sandbox too, in which nothing starts.
func NewSandbox(s config.Server, driver *process.Driver, roots map[string]string) (*Sandbox, error) {
	b := &Sandbox{driver: driver, Network: s.Sandbox.Network}
	b.err = b.serve(s, roots)
	return b, b.err
}

func (b *Sandbox) serve(s config.Server, roots map[string]string) error {
	if len(s.Sandbox.Roots) == 0 {
		return errors.New("it is to run in the sandbox, and works in no root")
	}
	b.service = process.ServerConfig{
		Argv: append([]string{s.Command}, s.Args...), Dir: s.Dir, Env: s.Env, Roots: map[string]string{},
		Readable: s.Sandbox.Readable, Network: s.Sandbox.Network, Masks: secrets,
	}
	for _, name := range s.Sandbox.Roots {
		b.service.Roots[name] = roots[name]
	}
	if filepath.IsAbs(s.Command) {
		b.service.Readable = append(b.service.Readable, s.Command)
	}
	for name, dir := range b.service.Roots {
		if dir == "" {
			return fmt.Errorf("it is to work in root %q, which is not there; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(roots)), ", "))
		}
	}
	if b.driver == nil {
		return errors.New("it is to run in the sandbox, and there is no driver of programs")
	}
	return nil
}

// Sandboxed is a server that runs in the sandbox.
type Sandboxed struct{ *process.Server }

// Pipes returns the pipes of the server.
func (b Sandboxed) Pipes() (io.WriteCloser, io.ReadCloser, io.Reader) {
	in, out, complaints := b.Server.Pipes()
	return in, out, complaints
}

// End ends the server.
func (b Sandboxed) End() { b.Close() }

// Start starts the server in the sandbox.
func (b *Sandbox) Start(ctx context.Context) (Process, error) {
	if b.err != nil {
		return nil, b.err
	}
	r, err := b.driver.Serve(ctx, b.service)
	if err != nil {
		return nil, err
	}
	return Sandboxed{r}, nil
}

// Roots returns the names of the roots that the server works in.
func (b *Sandbox) Roots() []string { return slices.Sorted(maps.Keys(b.service.Roots)) }

// Confines says what a server lacks in the sandbox: the usual reasons why it
// does not start there.
func (b *Sandbox) Confines() string {
	switch {
	case b == nil:
		return ""
	case b.Network:
		return `; in the sandbox it sees the programs of the system, its roots and what is "readable"`
	}
	return `; in the sandbox it sees the programs of the system, its roots and what is "readable", and no network, so that npx and the like fetch nothing: ` +
		"install the server, and start what was installed"
}
