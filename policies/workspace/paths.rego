# What the paths of the workspace policy mean. The helpers have a package of
# their own so that a rule of the same name in somebody's own policy does not
# widen them.
package remit.workspace.paths

inside if {
	input.access.resource.kind == "file"
	input.access.resource.root == "workspace"
}

git if ".git" in names

secret if {
	some name in names
	secret_name(name)
}

# The segments as a file system that ignores case, and dots and spaces at the
# end, would read them: there .GIT and ".env " are the same files.
names contains name if {
	input.access.resource.kind == "file"
	some segment in input.access.resource.segments
	name := trim_right(lower(segment), ". ")
}

secret_names := {
	".env", ".ssh", ".aws", ".gnupg", ".kube",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd",
	".git-credentials", "credentials", "credentials.json", "credentials.csv",
}

secret_prefixes := {".env.", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}

secret_suffixes := {".pem", ".key", ".p12", ".pfx"}

secret_name(name) if name in secret_names

secret_name(name) if strings.any_prefix_match(name, secret_prefixes)

secret_name(name) if strings.any_suffix_match(name, secret_suffixes)

# Patterns of everything above, written out because they are asked for with
# every decision. A test holds the lists together.
masked := {history} | masked_secrets

history := "file://*/**/.git/**"

# The same without the history, which programs work with.
masked_secrets := {
	"file://*/**/.env/**", "file://*/**/.ssh/**", "file://*/**/.aws/**",
	"file://*/**/.gnupg/**", "file://*/**/.kube/**",
	"file://*/**/.netrc/**", "file://*/**/_netrc/**", "file://*/**/.npmrc/**",
	"file://*/**/.pypirc/**", "file://*/**/.pgpass/**", "file://*/**/.htpasswd/**",
	"file://*/**/.git-credentials/**", "file://*/**/credentials/**",
	"file://*/**/credentials.json/**", "file://*/**/credentials.csv/**",
	"file://*/**/.env.*/**", "file://*/**/id_rsa*/**", "file://*/**/id_dsa*/**",
	"file://*/**/id_ecdsa*/**", "file://*/**/id_ed25519*/**",
	"file://*/**/*.pem/**", "file://*/**/*.key/**", "file://*/**/*.p12/**", "file://*/**/*.pfx/**",
}
