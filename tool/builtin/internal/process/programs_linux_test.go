package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/tool"
)

// program is a row of the table in docs/reference/programs.md: what works, or fails with
// an answer that says why.
type program struct {
	name  string
	needs string // programs that have to be installed beside it
	// works and fails are scripts; the one ends with exit code 0, the other does not.
	works, says  string
	fails, names string
	// user says that the program does not run as root anywhere, account that it wants
	// to know the name of the user that it runs as.
	user, account bool
}

// server is a script that starts a server of Python on a port of the loopback, for a
// client that follows.
const server = `cd /tmp && echo served > page && python3 -m http.server 8000 >/dev/null 2>&1 & ` +
	`until bash -c '> /dev/tcp/127.0.0.1/8000' 2>/dev/null; do sleep 0.05; done; `

const (
	noNetwork = "which has no network but its own loopback"
	noNames   = "no name can be looked up"
	nothing   = "nothing listened on a loopback port"
)

func programs() []program {
	return []program{
		{name: "bash", works: "a=(1 2 3); echo ${a[@]:1} {x,y}; cat <(echo sub)", says: "2 3 x y\nsub"},
		{
			name: "git", works: "git init -q /tmp/r && cd /tmp/r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git log --format=%s",
			says: "first", fails: "git clone https://example.com/r.git /tmp/c", names: noNames,
		},
		{
			name: "python3", works: `python3 -c '
import threading, urllib.request, http.server, multiprocessing
s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
print(urllib.request.urlopen("http://127.0.0.1:%d/" % s.server_port).status)
with multiprocessing.Pool(2) as p: print(sum(p.map(abs, [-1, -2])))'`, says: "200\n3",
			fails: `python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80))'`, names: noNetwork,
		},
		{
			name: "pip3", works: "pip3 --version", says: "pip",
			fails: "pip3 download --retries 0 --no-cache-dir -d /tmp example-of-nothing", names: noNames,
		},
		{
			name: "node", works: `node -e '
const s = require("http").createServer((q, r) => r.end("served")).listen(0, () => require("http").get("http://localhost:" + s.address().port,
	r => r.on("data", d => { console.log(String(d), Object.keys(require("os").networkInterfaces())); s.close(); r.destroy(); process.exit() })));'`, says: "served [ 'lo' ]",
			fails: `node -e 'require("http").get("http://192.0.2.1/").on("error", e => { console.error(e.code); process.exit(1) })'`, names: noNetwork,
		},
		{
			name: "npm", works: `mkdir p && cd p && npm init -y >/dev/null && npm pkg set scripts.test='echo tested' && npm test`, says: "tested",
			fails: "cd /tmp && npm_config_fetch_retries=0 npm install example-of-nothing", names: noNames,
		},
		{
			name: "npx", works: `mkdir -p n/node_modules/.bin && cd n && printf '#!/bin/sh\necho ran\n' > node_modules/.bin/here && chmod +x node_modules/.bin/here && npx here`, says: "ran",
			fails: "npm_config_fetch_retries=0 npx --yes example-of-nothing", names: noNames,
		},
		{
			name: "go", works: "mkdir g && cd g && go mod init m && printf 'package main\\nfunc main() { println(\"built\") }\\n' > main.go && go run .", says: "built",
			fails: "mkdir /tmp/m && cd /tmp/m && go mod init m && go get example.com/m@v1.0.0", names: noNames,
		},
		{name: "make", works: "printf 'a: b\\n\\tcp b a\\n' > Makefile; echo made > b; make -s && cat a", says: "made"},
		{name: "gcc", works: `printf '#include <stdio.h>\nint main() { puts("built"); }\n' > m.c && gcc -o m m.c && ./m`, says: "built"},
		{
			name: "cargo", needs: "rustc cc", works: "cargo new -q --vcs none c && cd c && cargo run -q --offline", says: "Hello, world!",
			fails: "cd /tmp && cargo new -q --vcs none c && cd c && CARGO_NET_RETRY=0 cargo add example-of-nothing", names: noNames,
		},
		{
			name: "java", works: `mkdir j && cd j && printf 'import java.net.*; class A { public static void main(String[] a) throws Exception { ServerSocket s = new ServerSocket(0); new Socket("localhost", s.getLocalPort()); System.out.println(java.security.MessageDigest.getInstance("SHA-256").getAlgorithm()); } }' > A.java && java A.java`,
			says: "SHA-256",
		},
		{name: "sed", works: "echo old > s; sed -i s/old/new/ s; cat s", says: "new"},
		{name: "awk", works: "echo 1 2 | awk '{ print $1 + $2 }'", says: "3"},
		{name: "grep", works: "echo found > f1; grep -r found .", says: "f1:found"},
		{name: "find", works: "touch f2; find . -name f2 -exec echo {} +", says: "./f2"},
		{name: "tar", works: "mkdir t; echo x > t/x; tar czf t.tgz t; rm -r t; tar xzf t.tgz; cat t/x", says: "x"},
		{name: "gzip", works: "echo zipped > z; gzip z; zcat z.gz", says: "zipped"},
		{
			name: "curl", needs: "python3", works: server + "curl -s http://localhost:8000/page", says: "served",
			fails: "curl -sS https://example.com/", names: noNames,
		},
		{name: "jq", works: `echo '{"a":[1,2]}' | jq -c .a`, says: "[1,2]"},
		{name: "sqlite3", works: "sqlite3 d.db 'create table t (x); insert into t values (7)' && sqlite3 d.db 'select x from t'", says: "7"},
		{
			name: "postgres", needs: "initdb pg_ctl psql", user: true, account: true,
			works: "initdb -D /tmp/db >/dev/null && pg_ctl -s -w -D /tmp/db -o '-k /tmp' -l /tmp/log start && psql -h localhost -d postgres -Atc 'select 6*7' && psql -h /tmp -d postgres -Atc 'select 6*7'; pg_ctl -s -D /tmp/db stop", says: "42\n42",
		},
		{name: "psql", account: true, fails: "psql -h localhost -d postgres -c 'select 1'", names: nothing},
		{name: "chromium", works: "echo '<p>shown</p>' > p.html; chromium --headless --no-sandbox --disable-gpu --user-data-dir=/tmp/c --dump-dom file://$PWD/p.html", says: "<p>shown</p>"},
		{name: "perl", works: "perl -MPOSIX -e 'print floor(2.5), qq(\\n)'", says: "2"},
		{name: "ruby", works: `ruby -rsocket -e 's = TCPServer.new("127.0.0.1", 0); TCPSocket.new("127.0.0.1", s.addr[1]); puts "served"'`, says: "served"},
		{name: "php", works: "php -r 'echo json_encode([1, 2]);'", says: "[1,2]"},
		{name: "patch", needs: "diff", works: "echo a > pa; echo b > pb; diff -u pa pb > pd; patch -s pa pd; cat pa", says: "b"},
		{name: "rsync", account: true, works: "mkdir r; echo x > r/x; rsync -a r/ r2/; cat r2/x", says: "x", fails: "rsync -a r/ host.example.com:r", names: noNames},
		{name: "openssl", works: "openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/k -out /tmp/c -subj /CN=a -days 1 2>/dev/null && openssl x509 -in /tmp/c -noout -subject", says: "CN = a"},
		{name: "ssh-keygen", account: true, works: "ssh-keygen -q -t ed25519 -N '' -f /tmp/k && ssh-keygen -l -f /tmp/k | grep -o ED25519", says: "ED25519", fails: "ssh -o BatchMode=yes host.example.com", names: noNames},
		{name: "tmux", works: "export SHELL=/bin/sh; tmux -L x new-session -d 'echo in tmux > seen; tmux -L x wait-for -S done; cat'; tmux -L x wait-for done; cat seen; tmux -L x kill-server", says: "in tmux"},
		{name: "screen", account: true, works: "export SCREENDIR=/tmp/screens; mkdir -m 700 $SCREENDIR; screen -D -m sh -c 'echo in screen > seen2'; cat seen2", says: "in screen"},
		{name: "strace", fails: "strace true", names: "refused the system call ptrace"},
		{name: "gdb", fails: "gdb -batch -ex run -ex 'quit $_exitcode != 0' true; exit 1", names: "refused the system call ptrace"},
		{name: "unshare", fails: "unshare --user true", names: "refused the system call unshare, with a namespace"},
		{name: "ping", fails: "ping -c 1 127.0.0.1", names: "refused a raw Internet socket"},
		{name: "docker", fails: "docker ps", names: `"/var/run/docker.sock" is outside of what programs see`},
		{name: "sudo", fails: "sudo -n true", names: "programs have no rights of an administrator"},
	}
}

// has names the first of some programs that is not installed.
func has(names string) (missing string) {
	for name := range strings.FieldsSeq(names) {
		found := false
		for dir := range strings.SplitSeq(sandbox.Path, ":") {
			is, err := os.Stat(filepath.Join(dir, name))
			found = found || err == nil && is.Mode().Perm()&0o111 != 0
		}
		if !found {
			return name
		}
	}
	return ""
}

// TestPrograms tries each program of the table in docs/reference/programs.md. It skips,
// with its name, what is not installed.
func TestPrograms(t *testing.T) {
	for _, p := range programs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if missing := has(p.name + " " + p.needs); missing != "" {
				t.Skip(missing + " is not installed")
			}
			if p.user && os.Geteuid() == 0 {
				t.Skip(p.name + " does not run as root")
			}
			if _, err := user.Current(); err != nil && p.account {
				t.Skip("this user has no account, which " + p.name + " wants")
			}
			w := newProgramSetup(t)
			if p.works != "" {
				_, o := w.shell(t, p.works)
				require.Equal(t, tool.StatusDone, o.Status)
				require.Contains(t, o.Text, p.says)
				require.NotContains(t, o.Text, "[exit code ")
			}
			if p.fails != "" {
				_, o := w.shell(t, p.fails)
				require.Equal(t, tool.StatusDone, o.Status)
				require.Contains(t, o.Text, "[exit code ")
				require.Contains(t, o.Text, p.names)
			}
		})
	}
}

// TestProgramsAsUser tries them as an ordinary user, as root may become one.
func TestProgramsAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestPrograms is that already
	}
	t.Parallel() // it waits for a process of its own
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("this machine has no account nobody")
	}
	id := func(text string) uint32 {
		n, err := strconv.ParseUint(text, 10, 32)
		require.NoError(t, err)
		return uint32(n)
	}
	dir, err := os.MkdirTemp("", "nobody")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	exe, err := plain()
	require.NoError(t, err)
	data, err := os.ReadFile(exe)
	require.NoError(t, err)
	file := filepath.Join(dir, "process.test")
	require.NoError(t, os.WriteFile(file, data, 0o755))
	cmd := exec.Command(file, "-test.v", "-test.run", "^TestPrograms$")
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id(nobody.Uid), Gid: id(nobody.Gid)}}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Run(), &said)
	if has("initdb pg_ctl psql") == "" && !strings.Contains(said.String(), "this machine has no sandbox") {
		require.Contains(t, said.String(), "--- PASS: TestPrograms/postgres")
	}
}

// TestProgramsAreDocumented: the table names each program that is tried, and no other.
func TestProgramsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "programs.md"))
	if err != nil {
		t.Skip(err)
	}
	_, table, _ := strings.Cut(string(text), "| program | works | is refused, and the answer says |")
	var documented, tried []string
	for _, p := range programs() {
		tried = append(tried, p.name)
	}
	for line := range strings.Lines(table) {
		if fields := strings.Split(line, "`"); strings.HasPrefix(line, "| `") {
			documented = append(documented, fields[1])
		}
		if strings.HasPrefix(line, "#") {
			break
		}
	}
	require.ElementsMatch(t, tried, documented)
}
