package main

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

// seeded is one skill of the catalogue. Installers write it to a folder of its name.
type seeded struct {
	slug     string // empty takes the name's
	name     string
	files    []registry.File
	unlisted bool // strict hosts would refuse it
	draft    bool
}

func text(name, content string) registry.File {
	return registry.File{Path: name, Content: []byte(content)}
}

// catalogue is what test parties find: one skill to run, and what is hard to serve. Nobody grants a script.
func catalogue() []seeded {
	allBytes := make([]byte, 256)
	for i := range allBytes {
		allBytes[i] = byte(i)
	}
	return []seeded{
		{name: "greet", files: []registry.File{
			{Path: registry.SkillFile, Content: registry.ComposeSkillMD("greet", "Greets somebody by name. Use it to test a client.", "Run scripts/greet.sh.\n")},
			{Path: "scripts/greet.sh", Content: []byte("#!/bin/bash\necho hello\n"), Mode: 0o755},
			text("references/manners.md", "# Manners\n\nSay please.\n"),
		}},
		{name: "single-file", files: []registry.File{
			text(registry.SkillFile, "---\nname: single-file\ndescription: >-\n  One file, a folded description,\n  and unknown fields.\nversion: 1.10\nreleased: 2024-01-01\nmode: 0777\nenabled: yes\ntags: [a, \"b\"]\n---\n# Single\r\n"),
		}},
		{name: "hard-to-serve", files: []registry.File{
			text(registry.SkillFile, "---\r\nname: hard-to-serve\r\ndescription: \"Quotes \\\"x\\\", <angles> & ünïcödé 技能\"\r\nmetadata:\r\n  version: \"1.0\"\r\n---\r\nCRLF\r\n"),
			{Path: "assets/all.bin", Content: allBytes},
			{Path: "assets/deep/er/empty.txt", Content: []byte{}},
			text("références/données 技能 #1?.md", "é\n"),
			text("references/100%25 [a]{b}'\"&+;=@:$!~.md", "odd name\n"),
			text("nested/SKILL.md", "---\nname: nested\ndescription: A skill below a skill.\n---\nNested\n"),
			text("nested/scripts/x.py", "print(1)\n"),
			text("bom.txt", "\ufeffmark\n"),
		}},
		{name: "deep-paths", files: []registry.File{
			text(registry.SkillFile, "---\nname: deep-paths\ndescription: Paths that a plain tar cannot hold.\n---\n"),
			text(strings.Repeat("d", 150)+"/"+strings.Repeat("é", 60)+"/"+strings.Repeat("f", 150), "deep\n"),
		}},
		{slug: "other-slug", name: "named-differently", files: []registry.File{
			text(registry.SkillFile, "---\nname: named-differently\ndescription: Its slug is another.\n---\n"), text("a/b.txt", "b\n"),
		}},
		{name: "unquoted-version", unlisted: true, files: []registry.File{
			text(registry.SkillFile, "---\nname: unquoted-version\ndescription: Strict hosts would refuse a list that has it.\nmetadata:\n  version: 1.0\n---\n"),
		}},
		{name: "unpublished", draft: true, files: []registry.File{
			text(registry.SkillFile, "---\nname: unpublished\ndescription: Nobody published it.\n---\n"),
		}},
	}
}

// seed saves the catalogue.
func seed(ctx context.Context, product *server.Server) error {
	for _, s := range catalogue() {
		_, err := product.Registry().Save(ctx, server.Operator(), registry.SaveRequest{
			Ref: sallyport.SkillRef{Slug: s.slug}, Files: s.files, Publish: !s.draft,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTree writes the skills that an installer must find, each in a folder of its name, so that what it installed can be compared.
func writeTree(folder string) (err error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, s := range catalogue() {
		if s.unlisted || s.draft {
			continue
		}
		for _, file := range s.files {
			name := path.Join(s.name, file.Path)
			if err := root.MkdirAll(path.Dir(name), 0o750); err != nil {
				return err
			}
			if err := root.WriteFile(name, file.Content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
