#ifndef SALLYPORT_PROBE_H
#define SALLYPORT_PROBE_H

/* run_probe is the script of a probe run: it tries what a hostile script would try and prints the answers. */
void run_probe(int argc, char **argv);

#endif
