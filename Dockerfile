# docker build -t fastpong . && docker run --rm -it -v "$PWD/runs:/data/runs" fastpong train --envs 64 --minutes 10
FROM python:3.13-slim
COPY pyproject.toml LICENSE /src/
COPY docs/description.md /src/docs/
COPY fastpong /src/fastpong
RUN pip install --no-cache-dir '/src[play,plot]' && mkdir -m 1777 /data /cache
WORKDIR /data
# Compiled here, for every user. A volume can be written with a read-only root, too, and is kept where it has a name.
ENV NUMBA_CACHE_DIR=/cache MPLCONFIGDIR=/tmp
RUN fastpong train --minutes 1.5 --set eval_games=0 --run /tmp/run && rm -r /tmp/run && chmod -R a+rwX /cache
VOLUME /cache
ENTRYPOINT ["fastpong"]
