package container

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

// prepare makes an engine ready for runs: it finds out what the engine is, puts PID 1's program into a volume there, and returns
// the session with the image that probe runs are made of. Nothing of the host is mounted into a container, so the engine
// need not see our files.
func (e *Executor) prepare(ctx context.Context) (engine *session, probeImage string, err error) {
	engine, err = e.engine.open(ctx)
	if err != nil {
		return nil, "", err
	}
	if err := engine.info(ctx); err != nil {
		return nil, "", err
	}
	program := helperFor(engine.arch)
	if program == nil {
		return nil, "", fmt.Errorf("the engine's machine is %.20q, and there is a PID 1 for amd64 and arm64", engine.arch)
	}
	if engine.filter, err = seccomp.Filter(engine.arch, e.cfg.Profile); err != nil {
		return nil, "", err
	}
	version := digest(program)[:12]
	if probeImage, err = engine.emptyImage(ctx, version); err != nil {
		return nil, "", fmt.Errorf("the image for probes: %w", err)
	}
	engine.volume = "sallyport-init-" + version
	if err := e.fillVolume(ctx, engine, probeImage, program); err != nil {
		return nil, "", fmt.Errorf("the volume for PID 1: %w", err)
	}
	return engine, probeImage, nil
}

// emptyImage returns the id of an image with nothing in it, and loads it where it is not there.
func (s *session) emptyImage(ctx context.Context, version string) (string, error) {
	tag := "localhost/sallyport-empty:" + version
	found, err := s.inspectImage(ctx, tag)
	if err == nil || !refusedWith(err, http.StatusNotFound) {
		return found.ID, err
	}
	archive, err := imageArchive(tag, s.arch)
	if err != nil {
		return "", err
	}
	if err := s.loadImage(ctx, archive); err != nil {
		return "", err
	}
	found, err = s.inspectImage(ctx, tag)
	return found.ID, err
}

// imageArchive is an image as `docker save` writes it. Its one layer holds the folder that PID 1's volume is mounted on.
func imageArchive(tag, arch string) ([]byte, error) {
	layer, err := archiveOf(tar.Header{Name: strings.TrimPrefix(path.Dir(pathInit), "/") + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "config": map[string]any{"Labels": map[string]string{labelPart: "empty"}},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
		"history": []map[string]any{{"created_by": "sallyport"}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]map[string]any{
		{"Config": digest(config) + ".json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name string
		body []byte
	}{{"layer.tar", layer}, {digest(config) + ".json", config}, {"manifest.json", manifest}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.body))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// archiveOf is a tar archive of one file or folder.
func archiveOf(header tar.Header, content []byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	header.Size = int64(len(content))
	if err := w.WriteHeader(&header); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// fillVolume writes PID 1's program into the volume, through a container that is never started. It is written anew by every
// process: the name has its digest, and what an earlier one left half done is put right.
func (e *Executor) fillVolume(ctx context.Context, engine *session, emptyImage string, program []byte) (err error) {
	if err := engine.createVolume(ctx, engine.volume, map[string]string{labelPart: "init"}); err != nil {
		return err
	}
	archive, err := archiveOf(tar.Header{Name: path.Base(pathInit), Typeflag: tar.TypeReg, Mode: 0o555}, program)
	if err != nil {
		return err
	}
	labels := e.labels()
	labels[labelPart] = "fill"
	name := containerName()
	defer func() { err = errors.Join(err, engine.remove(context.WithoutCancel(ctx), name)) }()
	err = engine.create(ctx, name, map[string]any{
		"Image": emptyImage, "Entrypoint": []string{pathInit}, "Labels": labels, "NetworkDisabled": true,
		"HostConfig": map[string]any{"NetworkMode": "none", "Binds": []string{engine.volume + ":" + path.Dir(pathInit)}},
	})
	if err != nil {
		return err
	}
	return engine.putArchive(ctx, name, path.Dir(pathInit), archive)
}
