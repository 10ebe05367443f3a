# A container that judges finished workbooks offline: LibreOffice, the calculation engines, and the
# judge itself. Built by `judge sandbox build --verifier`, which lays the folders beside this file.
ARG BASE
FROM ${BASE}
COPY tools /
COPY site /opt/judge/site
COPY engines /opt/judge/engines
COPY app /opt/judge/app
COPY judge /usr/bin/judge
# Some packages hold templates that no Python compiles; they are not imported either.
RUN python3 -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /opt/judge >/dev/null || true
RUN python3 -m compileall -q -j 0 "$(python3 -c 'import os; print(os.path.dirname(os.__file__))')" >/dev/null || true
ENV LANG=C.UTF-8 JUDGE_CACHE=/tmp/judge-cache
WORKDIR /tmp
