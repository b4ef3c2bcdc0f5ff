package process

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamed checks that names that a program uses but cannot see, and errors
// that rules cause, are reported by rule. Visible names are not.
func TestNamed(t *testing.T) {
	v := view{dirs: map[string]string{"workspace": "/w/s"}, masked: []masked{{"workspace", "/w/s", ".env"}, {"workspace", "/w/s", "tls/server.key"}, {"workspace", "/w/s", "a/.ssh"}}}
	for _, tt := range []struct {
		name, argv string
		out, err   string
		code       int
		want       []string
	}{
		{name: "nothing", argv: "ls", out: "a b"},
		{name: "command line", argv: "cat .env", want: []string{`"workspace/.env" is hidden from programs by the policy`}},
		{name: "a script", argv: "sh\n-c\ncd tls && wc -c <'server.key'", want: []string{`"workspace/tls/server.key" is hidden from programs by the policy`}},
		{name: "complaint", argv: "make", err: "make: *** tls/server.key: No such file\n", want: []string{`"workspace/tls/server.key" is hidden from programs by the policy`}},
		{name: "absolute", argv: "x", err: "open /w/s/.env: ENOENT\n", want: []string{`"workspace/.env" is hidden from programs by the policy`}},
		{name: "below it", argv: "ls a/.ssh/config", want: []string{`"workspace/a/.ssh" is hidden from programs by the policy`}},
		{name: "output of what failed", argv: "x", out: "FAIL ./.env:1", code: 1, want: []string{`"workspace/.env" is hidden from programs by the policy`}},
		{name: "output of what succeeded", argv: "x", out: "see .env"},
		{name: "a socket", argv: "x", err: "cannot connect to unix:///var/run/docker.sock. Is it there?\n", want: []string{`"/var/run/docker.sock" is outside of what programs see: the roots, the programs and libraries of the system, /tmp, /var/tmp, /dev and /proc`}},
		{name: "others", argv: "cat b/.env x.env .env.go tls2/server.key server.keys .ssh2"},
		{name: "unseen", argv: "x", err: "cat: /opt/a: No such file or directory\n", want: []string{`"/opt/a" is outside of what programs see: the roots, the programs and libraries of the system, /tmp, /var/tmp, /dev and /proc`}},
		{name: "seen", argv: "x", err: "cat: /tmp/a: No such file\ncat: /usr/x: No such file\ncat: /w/s/x: No such file\nat /opt/x\n"},
		{name: "read-only", argv: "x", err: "touch: /usr/a: Read-only file system\n", want: []string{"programs can write only in the roots that their call may change, /tmp, /var/tmp and /dev/shm"}},
		{name: "rights", argv: "x", err: "chown: Operation not permitted\n", want: []string{"programs have no rights of an administrator (no capabilities, no setuid): not those of sudo, chown to others, or mount"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Result{Code: tt.code, Stdout: []byte(tt.out), Stderr: []byte(tt.err)}
			(&runHandle{view: v}).named(Cmd{Argv: []string{tt.argv}}, &r)
			var texts []string
			for _, met := range r.Restrictions {
				texts = append(texts, met.Text)
			}
			require.Equal(t, tt.want, texts)
		})
	}
	require.Empty(t, view{}.hiddenIn(".env"))
}
