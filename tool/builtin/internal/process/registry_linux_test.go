package process_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/revert"
)

// tgz is an archive of files, by names.
func tgz(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range files {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}))
		_, err := w.Write([]byte(f[1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return out.Bytes()
}

// zipped is a zip archive of files, by names.
func zipped(t *testing.T, files ...[2]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		one, err := w.Create(f[0])
		require.NoError(t, err)
		_, err = one.Write([]byte(f[1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// registry serves one package for each package manager. Its URLs name the host
// of the request.
func registry(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	serve := func(path string, body func(r *http.Request) string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(body(r))) })
	}
	fixed := func(path string, body []byte) { serve(path, func(*http.Request) string { return string(body) }) }

	pkg := tgz(t, [2]string{"package/package.json", `{"name":"demo","version":"1.0.0"}`}, [2]string{"package/index.js", "module.exports = 42"})
	sum := sha512.Sum512(pkg)
	fixed("/npm/demo.tgz", pkg)
	serve("/npm/demo", func(r *http.Request) string {
		dist := map[string]any{"tarball": "https://" + r.Host + "/npm/demo.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		one := map[string]any{"name": "demo", "version": "1.0.0", "dist": dist}
		raw, _ := json.Marshal(map[string]any{"name": "demo", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": one}})
		return string(raw)
	})

	wheel := zipped(t, [2]string{"demo/__init__.py", "answer = 42\n"},
		[2]string{"demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"},
		[2]string{"demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		[2]string{"demo-1.0.dist-info/RECORD", "demo/__init__.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n"})
	fixed("/files/demo-1.0-py3-none-any.whl", wheel)
	mux.HandleFunc("/simple/demo/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<a href="https://files.test:%s/files/demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>`, portOf(r))
	})

	mod := "module example.test/demo\n"
	fixed("/go/example.test/demo/@v/list", []byte("v1.0.0\n"))
	fixed("/go/example.test/demo/@v/v1.0.0.info", []byte(`{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`))
	fixed("/go/example.test/demo/@v/v1.0.0.mod", []byte(mod))
	fixed("/go/example.test/demo/@v/v1.0.0.zip", zipped(t, [2]string{"example.test/demo@v1.0.0/go.mod", mod}, [2]string{"example.test/demo@v1.0.0/demo.go", "package demo\n\nconst Answer = 42\n"}))

	crate := tgz(t, [2]string{"remitdemo-1.0.0/Cargo.toml", "[package]\nname = \"remitdemo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"}, [2]string{"remitdemo-1.0.0/src/lib.rs", "pub fn answer() -> u32 { 42 }\n"})
	digest := sha256.Sum256(crate)
	serve("/index/config.json", func(r *http.Request) string { return `{"dl":"https://files.test:` + portOf(r) + `/crates/{crate}"}` })
	fixed("/index/re/mi/remitdemo", []byte(`{"name":"remitdemo","vers":"1.0.0","deps":[],"cksum":"`+hex.EncodeToString(digest[:])+`","features":{},"yanked":false}`+"\n"))
	fixed("/crates/remitdemo", crate)

	mux.Handle("/git/", http.StripPrefix("/git/", http.FileServer(http.Dir(servedRepository(t)))))
	return mux
}

func portOf(r *http.Request) string {
	_, port, _ := strings.Cut(r.Host, ":")
	return port
}

// servedRepository is a folder with a repository that a server of files can serve.
func servedRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := `git init -q --bare repo.git && git init -q w && cd w && echo 42 > answer && git add . && git -c user.name=a -c user.email=a@b commit -qm first && git push -q ../repo.git HEAD:refs/heads/main && cd ../repo.git && git symbolic-ref HEAD refs/heads/main && git update-server-info`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// installed skips the test if a program is in no folder that sandboxes show.
func installed(t *testing.T, name string) {
	t.Helper()
	for dir := range strings.SplitSeq(sandbox.Path, ":") {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return
		}
	}
	t.Skip(name + " is not installed in a folder that sandboxes show")
}

// TestPackageManagers checks that each package manager installs from a registry
// over https, through the proxy, that the call names the hosts, and that a
// revert removes the files and names the hosts too.
func TestPackageManagers(t *testing.T) {
	for name, c := range map[string]struct {
		script, says string
		hosts        []string
	}{
		"npm":  {"npm_config_cafile=$PWD/ca.pem npm_config_registry=REGISTRY/npm/ npm install --no-audit --no-fund demo && node -p 'require(\"demo\")'", "42", []string{"registry.test"}},
		"pip3": {"PIP_CERT=$PWD/ca.pem PIP_INDEX_URL=REGISTRY/simple/ pip3 install -q --no-cache-dir --disable-pip-version-check --target lib demo && PYTHONPATH=lib python3 -c 'import demo; print(demo.answer)'", "42", []string{"files.test", "registry.test"}},
		"go":   {"export SSL_CERT_FILE=$PWD/ca.pem GOPROXY=REGISTRY/go GOSUMDB=off; mkdir g && cd g && go mod init m && go get example.test/demo@v1.0.0 && cat go.sum", "example.test/demo v1.0.0", []string{"registry.test"}},
		"git":  {"GIT_SSL_CAINFO=$PWD/ca.pem git clone -q REGISTRY/git/repo.git c && cat c/answer", "42", []string{"registry.test"}},
		"cargo": {"export CARGO_HTTP_CAINFO=$PWD/ca.pem CARGO_HOME=/tmp/home; mkdir c && cd c && mkdir src .cargo && echo > src/lib.rs && " +
			`printf '[package]\nname = "c"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nremitdemo = "1"\n' > Cargo.toml && ` +
			`printf '[source.crates-io]\nreplace-with = "t"\n[source.t]\nregistry = "sparse+REGISTRY/index/"\n' > .cargo/config.toml && @cargo vendor -q --respect-source-config && cat vendor/remitdemo/src/lib.rs`, "42", []string{"files.test", "registry.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, registry(t))
			if name == "cargo" {
				c.script = strings.ReplaceAll(c.script, "@cargo", cargo(t, n.dir))
			} else {
				installed(t, name)
			}
			before := listing(t, n.dir, true)
			txn, o := n.shell(t, strings.ReplaceAll(c.script, "REGISTRY", n.url("registry.test", "")))
			require.Contains(t, o.Text, c.says)
			all := hostsOf(t, o)
			var origins []string
			for _, host := range c.hosts {
				at := n.url(host, "")
				require.Positive(t, all[at].Received, o.Text)
				origins = append(origins, at)
			}
			require.Len(t, all, len(c.hosts), o.Text)
			rep, err := n.s.Revert(t.Context(), txn, revert.Options{})
			require.NoError(t, err)
			require.True(t, rep.Complete(), "%+v", rep.NotReverted())
			require.Equal(t, origins, rep.Contacted)
			equal(t, before, listing(t, n.dir, true), "undo")
		})
	}
}

// cargo is the path of cargo for scripts: of the system, or a copy in the
// workspace of the one in a home folder, which sandboxes do not show.
func cargo(t *testing.T, dir string) string {
	t.Helper()
	for at := range strings.SplitSeq(sandbox.Path, ":") {
		if _, err := os.Stat(filepath.Join(at, "cargo")); err == nil {
			return "cargo"
		}
	}
	copied := filepath.Join(dir, "cargo")
	home, _ := os.UserHomeDir()
	found, _ := filepath.Glob(filepath.Join(home, ".rustup/toolchains/*/bin/cargo"))
	if len(found) == 0 {
		t.Skip("cargo is not installed")
	}
	program, err := os.ReadFile(found[len(found)-1])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, program, 0o755))
	return copied
}
