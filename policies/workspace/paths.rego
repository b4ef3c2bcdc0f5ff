# The meaning of paths for the workspace policy. The helpers have their own package,
# so that a rule of the same name in a user's policy does not
# widen them.
package remit.workspace.paths

inside if {
	input.access.resource.kind == "file"
	input.access.resource.root == "workspace"
}

git if ".git" in names

secret if {
	some name in names
	name in secret_names
}

secret if {
	some pair in secret_pairs
	pair[1] in names
	some i, name in segments
	trim_right(name, ". ") == pair[0]
	trim_right(segments[i + 1], ". ") == pair[1]
}

# Most paths need no further check.
secret if {
	some name in names
	guarded_name(name)
	hidden
}

# The segments as a file system reads them that ignores case, and trailing dots and
# spaces: there .GIT and ".env " are the same files.
names contains name if {
	input.access.resource.kind == "file"
	some segment in input.access.resource.segments
	name := trim_right(lower(segment), ". ")
}

# The rule checks each parent folder like the path itself: a file in a hidden folder
# is hidden, under any name.
hidden if {
	some last, name in segments
	not name in public_names
	some above in array.slice(segments, 0, last + 1)
	hides(trim_right(above, ". "), last)
}

segments := [lower(name) | some name in input.access.resource.segments]

secret_names := {
	".env", ".ssh", ".aws", ".gnupg", ".kube",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd",
	".git-credentials", "credentials", "credentials.json", "credentials.csv", "credentials.toml",
	".envrc", ".dockercfg", ".env~", "#.env#",
}

# An editor's swap file of .env is ..env.swp.
secret_prefixes := {".env.", "..env."}

secret_suffixes := {".env"}

# Only in a folder of that name: config.json alone has no meaning.
secret_pairs := {[".docker", "config.json"]}

key_prefixes := {"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}

key_suffixes := {
	".pem", ".key", ".p12", ".pfx", ".p8", ".ppk", ".jks", ".kdbx", ".tfstate", ".tfstate.backup",
	".key~", ".key.bak", ".key.old", ".key.orig", ".key.swp", ".key.swo",
	".pem~", ".pem.bak", ".pem.old", ".pem.orig", ".pem.swp", ".pem.swo",
}

guarded_name(name) if strings.any_prefix_match(name, secret_prefixes)

guarded_name(name) if strings.any_suffix_match(name, secret_suffixes)

guarded_name(name) if key_name(name)

hides(name, _) if strings.any_prefix_match(name, secret_prefixes)

hides(name, _) if strings.any_suffix_match(name, secret_suffixes)

hides(name, last) if {
	key_name(name)
	not fixture(last)
}

key_name(name) if strings.any_prefix_match(name, key_prefixes)

key_name(name) if strings.any_suffix_match(name, key_suffixes)

# Names that those lists match, of files without secrets: certificates, public
# keys, and templates without values. *-cert.pem is not among them, because such a
# file often contains the key too.
public_names := {
	"ca.pem", "ca-bundle.pem", "ca-cert.pem", "ca-certificates.pem", "cabundle.pem", "cacert.pem", "cacerts.pem",
	"cert.pem", "certificate.pem", "chain.pem", "fullchain.pem", "rootca.pem", "tls-ca-bundle.pem",
	"id_rsa.pub", "id_dsa.pub", "id_ecdsa.pub", "id_ed25519.pub",
	".env.dist", ".env.example", ".env.sample", ".env.template",
	"example.env", "go.env", "sample.env", "template.env", "cacerts.jks", "truststore.jks",
}

# Folders whose keys are test fixtures. A folder test counts only at the top or below
# src: elsewhere the name often means an environment. Passwords and tokens stay
# hidden there, because people run tests with real ones.
fixture_folders := {"testdata", "fixtures", "__fixtures__", "tests", "__tests__"}

fixture(last) if {
	some name in array.slice(segments, 0, last + 1)
	name in fixture_folders
}

fixture(_) if segments[0] == "test"

fixture(last) if {
	some i, name in segments
	i < last
	name == "src"
	segments[i + 1] == "test"
}

# Patterns of everything above, written out because every decision needs them. A test
# compares the lists.
masked := {history} | masked_secrets

history := "file://*/**/.git/**"

# The same without the history, which programs use.
masked_secrets := {
	"file://*/**/.env/**", "file://*/**/.ssh/**", "file://*/**/.aws/**",
	"file://*/**/.gnupg/**", "file://*/**/.kube/**",
	"file://*/**/.netrc/**", "file://*/**/_netrc/**", "file://*/**/.npmrc/**",
	"file://*/**/.pypirc/**", "file://*/**/.pgpass/**", "file://*/**/.htpasswd/**",
	"file://*/**/.git-credentials/**", "file://*/**/credentials/**",
	"file://*/**/credentials.json/**", "file://*/**/credentials.csv/**", "file://*/**/credentials.toml/**",
	"file://*/**/.envrc/**", "file://*/**/.dockercfg/**", "file://*/**/.env~/**", "file://*/**/%23.env%23/**",
	"file://*/**/.docker/config.json/**",
	concat("", ["file://*/**/.env.*/** except ", public_files]),
	concat("", ["file://*/**/..env.*/** except ", public_files]),
	concat("", ["file://*/**/*.env/** except ", public_files]),
	concat("", ["file://*/**/id_rsa*/** except ", public_files, fixtures]),
	concat("", ["file://*/**/id_dsa*/** except ", public_files, fixtures]),
	concat("", ["file://*/**/id_ecdsa*/** except ", public_files, fixtures]),
	concat("", ["file://*/**/id_ed25519*/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pem/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.key/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.p12/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pfx/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.p8/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.ppk/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.jks/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.kdbx/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.tfstate/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.tfstate.backup/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.key~/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.key.bak/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.key.old/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.key.orig/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.key.swp/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.key.swo/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pem~/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pem.bak/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pem.old/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pem.orig/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pem.swp/** except ", public_files, fixtures]),
	concat("", ["file://*/**/*.pem.swo/** except ", public_files, fixtures]),
}

public_files := concat(" ", [
	"file://*/**/.env.dist file://*/**/.env.example file://*/**/.env.sample file://*/**/.env.template",
	"file://*/**/ca-bundle.pem file://*/**/ca-cert.pem file://*/**/ca-certificates.pem file://*/**/ca.pem",
	"file://*/**/cabundle.pem file://*/**/cacert.pem file://*/**/cacerts.jks file://*/**/cacerts.pem",
	"file://*/**/cert.pem file://*/**/certificate.pem file://*/**/chain.pem file://*/**/example.env",
	"file://*/**/fullchain.pem file://*/**/go.env file://*/**/id_dsa.pub file://*/**/id_ecdsa.pub",
	"file://*/**/id_ed25519.pub file://*/**/id_rsa.pub file://*/**/rootca.pem file://*/**/sample.env",
	"file://*/**/template.env file://*/**/tls-ca-bundle.pem file://*/**/truststore.jks",
])

fixtures := concat(" ", [
	"",
	"file://*/**/__fixtures__/** file://*/**/__tests__/** file://*/**/fixtures/** file://*/**/src/test/**",
	"file://*/**/testdata/** file://*/**/tests/** file://*/test/**",
])
