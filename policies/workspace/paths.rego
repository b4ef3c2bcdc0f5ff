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

secret_name(name) if {
	some prefix in secret_prefixes
	startswith(name, prefix)
}

secret_name(name) if {
	some suffix in secret_suffixes
	endswith(name, suffix)
}

masked contains "file://*/**/.git/**"

masked contains sprintf("file://*/**/%s/**", [name]) if some name in secret_names

masked contains sprintf("file://*/**/%s*/**", [prefix]) if some prefix in secret_prefixes

masked contains sprintf("file://*/**/*%s/**", [suffix]) if some suffix in secret_suffixes
